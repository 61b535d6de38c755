"""Functions as metrics: of a trace and of the logits, wherever a metric is taken."""

from __future__ import annotations

import numpy as np
import pytest
from reference import in_float64
from refusing import refuses

import tui_transformer as tt
from tui_transformer import Ablate, Metric, Model, OfLogits, Patch, Set, Trace
from tui_transformer.analysis.effects import in_passes
from tui_transformer.analysis.measurable import OfTrace
from tui_transformer.errors import UsageError


def difference(logits: np.ndarray) -> float:
    return logits[-1, 11] - logits[-1, 12]


def by_logits(logits: np.ndarray) -> np.ndarray:
    slope = np.zeros_like(logits)
    slope[-1, 11], slope[-1, 12] = 1.0, -1.0
    return slope


NAMED, OF_LOGITS = Metric("difference", (11, 12)), OfLogits(difference, by_logits)


@pytest.fixture(scope="module")
def model() -> Model:
    return in_float64("copy")


@pytest.fixture(scope="module")
def traces(model: Model) -> tuple[Trace, Trace]:
    return model.trace(ids=[5, 6, 7, 8, 9]), model.trace(ids=[5, 10, 7, 8, 9])


@pytest.mark.parametrize("metric", [OF_LOGITS, lambda trace: difference(trace["output.logits"])])
def test_a_function_gives_what_the_metric_of_that_formula_gives(traces, metric):
    trace, other = traces
    for rows in (1, 512):
        wanted, got = (
            [each.value for _, each in tt.effects(trace, "head", metric=each, rows=rows)] for each in (NAMED, metric)
        )
        assert got == pytest.approx(wanted, rel=1e-12)
        wanted, got = (
            [each.value for each in tt.sweep(trace, other, "head", each, rows=rows)] for each in (NAMED, metric)
        )
        assert got == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("budget", [0, 1 << 20])
def test_a_function_reads_any_step_of_one_sentence_whatever_shares_its_pass(model, budget):
    trace = model.trace(ids=[5, 6, 7, 8, 9], budget=budget)
    seen = []

    def metric(edited: Trace) -> float:
        seen.append((edited.batch, edited["output.logits"].shape, len(edited.edits)))
        cell = edited.explain("1.self_attention.weights", head=1, row=4, column=2)
        assert cell.recomputed == pytest.approx(cell.stored, abs=1e-12)
        return (
            edited["1.self_attention.weights"][1, -1, 2]
            + edited.edited([Set("1.output", 0.0, rows=4)])["1.output"].sum()
        )

    found = list(tt.effects(trace, "head", metric=metric))
    assert set(seen) == {(1, (5, trace.program.shape("output.logits")[1]), 1), (1, seen[0][1], 0)}
    for target, got in found:
        assert got.value == pytest.approx(metric(trace.edited(target.edits(trace.program))), abs=1e-12)
        assert got.change == pytest.approx(got.value - metric(trace), abs=1e-12)


def test_what_shares_a_pass_is_computed_once_and_nothing_is_kept_for_a_metric_of_the_logits(model, traces):
    trace, ran = model.trace(ids=[5, 6, 7, 8, 9]), []
    trace.compute()
    targets = tt.every(trace.program, "head")[:4]
    list(
        tt.effects(
            trace, targets, metric=lambda each: each["output.logits"].sum(), before=lambda step: ran.append(step)
        )
    )
    assert ran.count(trace.program.step("output.logits")) == 1
    trace, _ = traces
    experiments = [(target, target.edits(trace.program)) for target in tt.every(trace.program, "head")]
    assert not any(edited.plan.names for _, edited, _ in in_passes(trace, experiments))


def test_a_function_is_measured_of_every_kind_of_model_and_of_the_logits_at_the_positions_that_are_asked_for(traces):
    pooled = in_float64("bert").trace(ids=[2, 5, 3])
    layer = "encoder.0.output"
    for target, got in tt.effects(pooled, "layer", metric=lambda trace: trace[layer][0, 1]):
        assert got.value == pooled.edited(target.edits(pooled.program))[layer][0, 1]
    attention = in_float64("attention").trace()
    ((_, got),) = tt.effects(attention, "head", metric=lambda trace: trace["context"].sum())
    assert (got.value, got.change) == (0.0, pytest.approx(-attention["context"].sum()))
    refuses("no logits of words", lambda: list(tt.effects(attention, "head", metric=OF_LOGITS)))
    shapes = []
    metric = OfLogits(lambda logits: float(shapes.append(logits.shape) or logits.dtype == np.float64))
    words = traces[0].program.shape("output.logits")[1]
    assert [metric.measure(traces[0], positions=each) for each in (None, 2, range(1, 4))] == [1.0, 1.0, 1.0]
    assert shapes == [(1, words), (1, words), (3, words)]


def test_a_sentence_of_a_batch_is_a_trace_of_its_own(model):
    rows = [[5, 6, 7, 8], [9, 10, 11, 12]]
    both, alone = model.trace(ids=rows), model.trace(ids=rows[1])
    name, region = "decoder.0.self_attention.context", (range(1), range(4), range(8))
    edits = [
        [Ablate(name, region, mean=True)],
        [Patch.between(both, model.trace(ids=rows[::-1]), "0.output", rows=1)],
        [Set("0.feed_forward.output.weight", 0.0, rows=3)],
    ]
    own = [edits[0], [Patch.between(alone, model.trace(ids=rows[0]), "0.output", rows=1)], edits[2]]
    for ofboth, of_one in zip(edits, own, strict=True):
        for held in (True, False):
            edited = both.edited(ofboth)
            if held:
                edited.compute()
            got = edited.sentence(1)
            assert got.batch == 1
            np.testing.assert_allclose(got["output.logits"], alone.edited(of_one)["output.logits"], atol=1e-12)
    got = tt.effect(both, both.edited(edits[0]), item=1, metric=lambda trace: trace["output.logits"][-1, 3])
    wanted = tt.effect(alone, alone.edited(own[0]), metric=Metric("logit", (3,)))
    assert (got.value, got.change) == pytest.approx((wanted.value, wanted.change), abs=1e-12)
    each = alone.edited_each([[Set("0.output", 0.0, rows=row)] for row in range(3)]).sentence(2)
    np.testing.assert_allclose(each["1.output"], alone.edited([Set("0.output", 0.0, rows=2)])["1.output"], atol=1e-12)
    refuses("there is no sentence 2: use 0 to 1", lambda: both.sentence(2))


def test_gradients_are_of_functions_whose_slope_is_said(traces):
    trace, _ = traces
    wanted, got = (
        tt.gradients_of(trace, each).values["decoder.0.feed_forward.residual"] for each in (NAMED, OF_LOGITS)
    )
    np.testing.assert_allclose(got, wanted, atol=1e-14)
    assert tt.integrated_gradients(trace, OF_LOGITS, points=4).remainder == pytest.approx(
        tt.integrated_gradients(trace, NAMED, points=4).remainder, abs=1e-12
    )
    refuses("give OfLogits its gradient", lambda: tt.gradients_of(trace, OfLogits(difference)))
    refuses("a function of a trace has no gradient", lambda: tt.gradients_of(trace, lambda each: 1.0))
    with pytest.raises(UsageError, match=r"the gradient is 2, and the logits are 1 × "):
        tt.gradients_of(trace, OfLogits(difference, lambda logits: logits[0, :2]))


def test_surveys_measure_ablations_by_functions():
    story = in_float64("story")
    texts = ["The fox found a shell .", "A crow ."]
    by = {
        "metric": OfLogits(lambda logits: logits[-1, 40] - logits[-1, 41]),
        "difference": Metric("difference", (40, 41)),
    }
    found = [
        [(row.layer, row.head, row.mean) for row in tt.measure_texts(story, texts, ["ablation"], metric=each).rows]
        for each in by.values()
    ]
    named = tt.measure_texts(story, texts, ["ablation"], metric="difference", tokens=(40, 41))
    assert found[0] == found[1] == [(row.layer, row.head, row.mean) for row in named.rows]
    rows = tt.measure_texts(story, texts, ["ablation"], metric=lambda trace: trace["1.output"][0, 0]).rows
    assert {row.measure for row in rows} == {"ablation:metric"}
    assert {row.unit for row in rows} <= {"", None}
    with pytest.raises(UsageError, match="tokens are of a metric that is named"):
        tt.measure_texts(story, texts, ["ablation"], metric=by["metric"], tokens=(40,))


def test_a_function_says_its_name_and_what_is_no_metric_is_refused(traces):
    assert OF_LOGITS.said() == "difference"
    assert OfTrace(lambda trace: 0.0).said() == "a function of the trace"
    trace, other = traces
    for wrong, said in (
        (lambda each: each["1.output"], r"a metric is one number, and this function gave 5 × 64 of them"),
        (lambda each: None, "gave NoneType"),
        ("logit", "a metric is a Metric, OfLogits or a function of a trace, not str"),
    ):
        refuses(said, lambda wrong=wrong: next(tt.effects(trace, "head", metric=wrong)), UsageError)
        refuses(said, lambda wrong=wrong: next(tt.sweep(trace, other, "head", wrong)), UsageError)
