"""Effects of ablations and patches: alone, in passes together, and in tables."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from ended import ended
from plain_numpy import softmax
from reference import REFERENCES, in_float64, trace_of
from refusing import refuses

from tui_transformer.analysis.effects import answer_positions, counted_positions, effects, effects_of, in_passes, means
from tui_transformer.analysis.effects import effect as effect_alone
from tui_transformer.analysis.metrics import METRICS, Metric
from tui_transformer.analysis.patching import KINDS, kinds_of, sweep, table_of
from tui_transformer.analysis.score import score
from tui_transformer.engine.changes import Scale, Set
from tui_transformer.engine.edits import Patch
from tui_transformer.engine.targets import START, every, parse
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

# The effect of ablating a part on the answer: equal to a full run by hand, at one position or at all
MODELS = ["encoder", "decoder", "encoder-decoder", *sorted(path.name for path in REFERENCES.iterdir())]
COPIED, CHANGED = [5, 6, 7, 8, 9], [5, 10, 7, 8, 9]
CONTEXT, OUTPUT = "decoder.0.self_attention.context", "decoder.0.feed_forward.residual"
ROWS = [[5, 6, 7, 8], [9, 10]]


def by_hand(trace: Trace, edited: Trace, rows: range) -> tuple[float, float]:
    """Change of the most likely token's log-probability, and divergence, from the shares of two whole runs."""
    p, q = (run["output.probabilities"][rows.start : rows.stop] for run in (trace, edited))
    likely = p.argmax(axis=1)
    change = sum(np.log(q[i, token]) - np.log(p[i, token]) for i, token in enumerate(likely))
    return change, float((p * np.log(p / q)).sum())


@pytest.mark.parametrize("name", MODELS)
def test_effects_of_heads_are_those_of_two_full_runs(name):
    trace = trace_of(name)
    last = trace.program.shape("output.logits")[0] - 1
    targets = every(trace.program, "head")[:3] + every(trace.program, "layer")[-1:]
    measured = ((mean, *found) for mean in (False, True) for found in effects(trace, targets, mean=mean))
    for mean, target, effect in measured:
        edited = trace.edited(target.edits(trace.program, mean=mean))
        change, divergence = by_hand(trace, edited, range(last, last + 1))
        assert effect.change == pytest.approx(change, rel=1e-7, abs=1e-10), (target, mean)
        assert effect.divergence == pytest.approx(divergence, rel=1e-7, abs=1e-10), (target, mean)
        assert effect.relative is None


@pytest.mark.parametrize("block", [1, 1 << 20])
@pytest.mark.parametrize("budget", [0, 1 << 30])
def test_effects_at_all_positions_are_sums(block, budget):
    trace, whole = replace(trace_of("gpt2", budget=budget), block=block), trace_of("gpt2")
    targets = every(trace.program, "head")[:2]
    for target, effect in effects(trace, targets, positions=range(5)):
        change, divergence = by_hand(whole, whole.edited(target.edits(whole.program)), range(5))
        assert (effect.change, effect.divergence) == pytest.approx((change, divergence), rel=1e-7)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_divergence_of_what_is_no_number_is_none():
    trace = trace_of("decoder")
    broken = trace.edited([Scale("output.logits", 1e308), Scale("output.logits", 1e308)])
    for before, after in ((broken, broken), (trace, broken), (broken, trace)):
        measured = effect_alone(before, after, range(1))
        assert np.isnan([measured.change, measured.size]).all()


def test_without_a_vocabulary_head_the_effect_is_the_relative_change_of_the_last_step():
    trace = in_float64("attention").trace()
    ((_, zero),) = effects(trace, every(trace.program, "head"))
    assert (zero.change, zero.divergence, zero.relative, zero.size) == (None, None, 1.0, 1.0)
    ((_, mean),) = effects(trace, every(trace.program, "head"), mean=True)
    states = trace["encoder.0.self_attention.context"][0]
    wanted = np.linalg.norm(states.mean(axis=0) - states) / np.linalg.norm(states)
    assert mean.relative == pytest.approx(wanted, rel=1e-12)


def test_padding_is_no_answer_and_a_model_that_tells_lines_apart_answers_at_the_first_token():
    trace = Model.load("encoder", device="cpu", pad_id=1).trace(ids=[2, 5, 3, 1, 1])
    assert answer_positions(trace) == range(2, 3)
    assert counted_positions(trace) == range(3)
    model = Model.load("question", device="cpu")
    trace = model.trace("the old sailor hid the map ?")
    assert answer_positions(trace, folder=model.folder) == range(1)
    assert answer_positions(trace, range(3, 4), folder=model.folder) == range(3, 4)


def test_effects_come_one_at_a_time_keep_nothing_and_can_be_ended():
    trace = trace_of("vanilla-decoder")
    trace.compute()
    ran: list[str] = []
    target = every(trace.program, "head")[-1]
    effects(trace, [target, target], before=lambda step: ran.append(step.name))[0]
    reached = trace.program.downstream([f"{target.place}.context"])
    assert ran
    assert set(ran) <= reached
    assert len(ran) == len(set(ran))
    # nothing of the second run is kept
    trace = trace_of("vanilla-decoder")
    assert trace.held == frozenset()
    list(effects(trace, every(trace.program, "head")))
    assert trace.held == trace.plan.names
    again = trace_of("vanilla-decoder")
    ended(
        lambda report: list(effects(again, every(again.program, "head"), before=report)),
        lambda step: step.name.endswith(".concat") and again.held,
    )
    # a position that is not there
    with pytest.raises(InputError, match="there is no position 5: use 0 to 4"):
        list(effects(trace, [parse("layer:decoder.0")], positions=range(5, 6)))


@pytest.mark.parametrize("positions", [range(0, 4, 2), range(3, 0, -1), [0, 2], 1.0])
def test_positions_that_are_no_neighbours_are_refused_and_not_filled_up(positions):
    trace, metric = trace_of(REFERENCES / "gpt2", [3, 9, 27, 81]), Metric("logit", (7,))
    with pytest.raises(UsageError, match=r"a range of neighbours as range\(2, 5\), not "):
        metric.measure(trace, positions=positions)
    refuses("a range of neighbours", lambda: list(effects(trace, "head", positions=positions)), UsageError)


# Experiments that share a pass give what each gives alone
@pytest.fixture(scope="module")
def model() -> Model:
    return in_float64("copy")


@pytest.fixture(scope="module")
def traces(model) -> tuple[Trace, Trace]:
    return model.trace(ids=COPIED), model.trace(ids=CHANGED)


def test_neighbours_that_change_the_same_steps_share_a_pass_but_long_sentences_are_alone(traces):
    trace, _ = traces
    targets = every(trace.program, "head")
    dealt = list(in_passes(trace, ((each, each.edits(trace.program)) for each in targets)))
    assert [len(group) for group, _, _ in dealt] == [4, 4]
    assert [each for group, _, _ in dealt for each in group] == list(targets)
    assert all(edited.batch == len(items) == 4 for _, edited, items in dealt)
    trace, _ = traces
    experiments = ((each, each.edits(trace.program)) for each in every(trace.program, "head"))
    dealt = list(in_passes(trace, experiments, rows=10))
    assert [len(group) for group, _, _ in dealt] == [2] * 4


@pytest.mark.parametrize("name", [None, *METRICS])
@pytest.mark.parametrize("mean", [False, True])
def test_effects_are_those_of_each_alone(traces, name, mean):
    metric = None if name is None else Metric(name, (11, 12)[: METRICS[name].tokens])
    measured = partial(
        effects, traces[0], every(traces[0].program, "head"), mean=mean, metric=metric, positions=range(2, 5)
    )
    together, alone = ([effect for _, effect in each] for each in (measured(), measured(rows=1)))
    for one, other in zip(together, alone, strict=True):
        assert (one.change, one.size) == pytest.approx((other.change, other.size), rel=1e-9, abs=1e-12)


def test_one_sentence_of_a_batch_is_measured_as_alone_and_a_position_that_is_not_seen_has_no_effect(model):
    batch, single = model.trace(ids=[CHANGED, COPIED]), model.trace(ids=COPIED)
    targets = every(single.program, "head")
    together = [each.divergence for _, each in effects(batch, targets, item=1)]
    assert together == pytest.approx([each.divergence for _, each in effects(single, targets)], rel=1e-9)
    trace = trace_of("gpt2")
    by_target = dict(effects(trace, every(trace.program, "position"), positions=range(2, 3)))
    sizes = [by_target[target].size for target in every(trace.program, "position")]
    assert min(sizes[:3]) > 1e-9
    assert sizes[3:] == pytest.approx([0.0, 0.0], abs=1e-14)


def test_any_edits_are_measured_each_alone_in_their_order(traces):
    trace, other = traces
    name = "1.self_attention.context"
    edits = [
        Patch.between(trace, other, name, heads=0),
        Scale("0.output", 0.5, rows=2),
        [Set(name, 0.0, heads=1), Patch.between(trace, other, "1.self_attention.query", rows=4)],
        Patch.between(trace, other, name, heads=range(1, 3)),
        Scale("0.self_attention.output.weight", 2.0),
        Scale("0.self_attention.output.weight", 0.5),
        Set(name, 1.0),
        (Scale("0.output", 2.0), Scale("0.output", 0.5)),
    ]
    lists = [list(each) if isinstance(each, list | tuple) else [each] for each in edits]
    passes: list[str] = []
    for metric in (None, Metric("difference", (11, 12)), lambda each: each["1.output"][2].sum()):
        found = effects_of(trace, iter(edits), metric=metric)
        for got, own in zip(found, lists, strict=True):
            wanted = effect_alone(trace, trace.edited(own), metric=metric)
            assert (got.change, got.value) == pytest.approx((wanted.change, wanted.value), abs=1e-12)
    metric = Metric("logit", (3,))
    effects_of(trace, edits, metric=metric, before=lambda step: passes.append(step.name))
    assert passes.count("decoder.1.self_attention.output") == 5  # contexts, 0.output, two together, either weight
    several = [Scale("*.self_attention.context", 0.0, heads=[0, 1]), Scale("0.output", 2.0)]
    alone = [effect_alone(trace, trace.edited([edit]), metric=metric).value for edit in several]
    for given in (several, [several[:1], (edit for edit in several[1:])]):
        assert [each.value for each in effects_of(trace, given, metric=metric)] == pytest.approx(alone)
    assert effects_of(trace, []) == []
    refuses("no step is called", lambda: effects_of(trace, [Set("9.output", 0.0)]))


# Means over a data set, beside sums by hand
def test_every_real_token_counts_alike_alone_or_in_a_batch(model):
    traces = [model.trace(ids=row) for row in ROWS]
    of_rows = means(traces, [CONTEXT, "0.output"])
    joined = np.concatenate([trace[CONTEXT] for trace in traces], axis=1)
    np.testing.assert_allclose(of_rows[CONTEXT], joined.mean(axis=1, keepdims=True), atol=1e-12)
    states = np.concatenate([trace[OUTPUT] for trace in traces])
    np.testing.assert_allclose(of_rows[OUTPUT], states.mean(axis=0, keepdims=True), atol=1e-12)
    batch = model.trace(ids=[ROWS[0], [*ROWS[1], 0, 0]], mask=[[1] * 4, [1, 1, 0, 0]])
    again = means([batch], [CONTEXT, OUTPUT])
    assert all(np.allclose(again[name], of_rows[name], atol=1e-12) for name in of_rows)


def test_an_ablation_to_the_mean_of_a_data_set_sets_the_part_to_it(model):
    trace = model.trace(ids=[5, 6, 7, 8, 5])
    heads = every(trace.program, "head")
    names = [name for target in heads for name in target.steps(trace.program)]
    of_rows = means([model.trace(ids=row) for row in ROWS], names)
    for target, effect in list(effects(trace, heads, means=of_rows))[::3]:
        name, head = target.steps(trace.program)[0], target.number or 0
        values = np.broadcast_to(of_rows[name][head], trace[name][head].shape)
        region = (range(head, head + 1), *(range(size) for size in values.shape))
        edited = trace.edited([Patch.of(name, values[None], region)])
        old, new = (
            each["output.logits"][4] - np.logaddexp.reduce(each["output.logits"][4]) for each in (trace, edited)
        )
        assert effect.divergence == pytest.approx((np.exp(old) * (old - new)).sum(), abs=1e-10)


def test_what_has_no_mean_is_refused(model):
    refuses("no sentence", lambda: means([], [CONTEXT]))
    with pytest.raises(InputError, match="of different sentences"):
        means([model.trace(ids=row) for row in ROWS], ["0.self_attention.weights"])
    refuses("no row for each token", lambda: means([model.trace(ids=ROWS[0])], ["0.self_attention.query.weight"]))
    trace = model.trace(ids=ROWS[0])
    refuses("there is no mean of", lambda: every(trace.program)[0].edits(trace.program, means={}))


# Tables of patches and metrics, beside whole runs by hand
@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_its_formula(traces, name):
    trace, other = traces
    new, old = (np.array(each["output.logits"])[4] for each in (other, trace))
    p, q = softmax(old), softmax(new)
    expected = {
        "divergence": (p * np.log(p / q)).sum(),
        "logit": new[11],
        "log-probability": np.log(q[11]),
        "difference": new[11] - new[12],
        "loss": -np.log(q[11]),
    }
    metric = Metric(name, (11, 12)[: METRICS[name].tokens])
    assert metric.measure(other, trace, range(4, 5)) == pytest.approx(expected[name], abs=1e-12)


def test_the_loss_on_targets_is_the_mean_over_those_that_are_counted(traces):
    logits = np.array(traces[0]["output.logits"])
    targets = (6, 7, -1, 9, -1)
    expected = -np.mean([np.log(softmax(logits[i])[target]) for i, target in enumerate(targets) if target >= 0])
    metric = Metric.of(None, (), targets)
    assert metric.measure(traces[0], traces[0], range(4, 5)) == pytest.approx(expected, abs=1e-12)
    assert metric.said() == "loss on 3 targets"


@pytest.mark.parametrize("name", [*METRICS, "targets"])
def test_the_slope_of_a_metric_is_how_it_moves_with_the_logits(traces, name):
    trace, other = traces
    metric = (
        Metric("loss", (), (6, 7, -1, 9, -1)) if name == "targets" else Metric(name, (11, 12)[: METRICS[name].tokens])
    )
    slope = metric.slope(other, trace, range(3, 5))
    rng = np.random.default_rng(0)
    way = rng.standard_normal(slope.shape)
    step = 1e-5
    moved = [
        metric.measure(
            other.edited([Patch.of("output.logits", other["output.logits"] + sign * step * way)]), trace, range(3, 5)
        )
        for sign in (1, -1)
    ]
    assert (slope * way).sum() == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_is_patched_as_if_alone(traces, kind):
    trace, other = traces
    table = table_of(trace.program, kind)
    metric = Metric("difference", (11, 12))
    measured, alone = (list(sweep(trace, other, table, metric, range(4, 5), **of)) for of in ({}, {"rows": 1}))
    assert [each.value for each in measured] == pytest.approx([each.value for each in alone], rel=1e-9, abs=1e-12)
    assert [each.place for each in measured] == list(table.places)
    for each in measured[:: max(len(measured) // 5, 1)]:
        patch = Patch.between(trace, other, each.place.step, each.place.rows, each.place.heads)
        logits = trace.edited([patch])["output.logits"][4]
        assert each.value == pytest.approx(logits[11] - logits[12], abs=1e-12)


def test_a_table_has_every_layer_and_position_or_head_and_what_enters_the_first_layer_decides_everything(traces):
    program = traces[0].program
    places = table_of(program, "position").places
    assert {(each.row, each.column) for each in places} == {(row, i) for row in (-1, 0, 1) for i in range(5)}
    assert places[0].step == program.step(START).name
    assert {(each.row, each.column) for each in table_of(program, "head").places} == {
        (row, i) for row in (0, 1) for i in range(4)
    }
    trace, other = traces
    metric = Metric("difference", (11, 12))
    measured = {
        (each.place.row, each.place.column): each.value
        for each in sweep(trace, other, table_of(trace.program, "position"), metric, range(4, 5))
    }
    whole = metric.measure(other, trace, range(4, 5))
    own = metric.measure(trace, trace, range(4, 5))
    assert measured[-1, 1] == pytest.approx(whole, abs=1e-12)  # only that token differs
    assert measured[-1, 3] == pytest.approx(own, abs=1e-12)
    assert measured[1, 4] == pytest.approx(whole, abs=1e-12)  # the last layer's last position is all that is read


def test_an_encoder_decoder_has_tables_of_every_stack_and_attention():
    model = in_float64("bart")
    own, other = (model.trace(ids=ids, decoder_ids=[2, 5, 6]) for ids in ([5, 6, 7, 8], [5, 9, 7, 8]))
    kinds = kinds_of(own.program)
    assert set(kinds) == {
        *(("position", ""), ("head", ""), ("layer", ""), ("position", "encoder"), ("layer", "encoder")),
        *(("head", "encoder self-attention"), ("head", "decoder self-attention")),
    }
    metric = Metric("logit", (9,))
    for kind, of in kinds:
        for each in sweep(own, other, table_of(own.program, kind, of), metric):
            place = each.place
            assert place.step.startswith("decoder.") == ("encoder" not in of)
            edited = own.edited([Patch.between(own, other, place.step, place.rows, place.heads)])
            assert each.value == pytest.approx(edited["output.logits"][-1, 9], abs=1e-12)
    last = {each.place.row: each.value for each in sweep(own, other, table_of(own.program, "layer", "encoder"), metric)}
    assert last[1] == pytest.approx(metric.measure(other), abs=1e-12)
    assert [each.step for each in table_of(own.program, "head", "cross").places] == [
        each.step for each in table_of(own.program, "head").places
    ]
    with pytest.raises(InputError, match="there is no middle with layers here: choose encoder or decoder"):
        table_of(own.program, "layer", "middle")


def test_what_cannot_be_measured_is_refused(traces):
    trace, other = traces
    refuses("no metric is called 'x'", lambda: Metric("x"), UsageError)
    refuses("about 2 tokens, not 1", lambda: Metric("difference", (1,)), UsageError)
    refuses("targets are of the metric loss", lambda: Metric("logit", (), (1, 2)), UsageError)
    refuses("every target is −1", lambda: Metric("loss", (), (-1, -1)), UsageError)
    refuses("2 targets for 5 positions", lambda: Metric("loss", (), (1, 2)).measure(trace, other, range(4, 5)))
    refuses("no token 99999", lambda: Metric("logit", (99_999,)).measure(trace, other, range(4, 5)))
    refuses("no kind is called", lambda: table_of(trace.program, "word"), UsageError)
    attention = Model.load("attention").trace()
    refuses("no layers", lambda: table_of(attention.program, "position"))
    refuses("no logits of words", lambda: Metric("divergence").measure(attention, attention, range(1)))


def test_traces_of_other_lengths_and_targets_of_others_are_refused() -> None:
    model = Model.load("story", device="cpu")
    short, long = model.trace("Once there was"), model.trace("Once there was a small girl")
    for pair in ((short, long), (long, short)):
        refuses("traces of one model and length", lambda pair=pair: effect_alone(*pair))
    for targets in ([1], [1, 2, 3, 4], [1, 2, 512], [1, 2, -2]):
        refuses("targets are 3 token IDs below 512", lambda targets=targets: score(short, targets))
