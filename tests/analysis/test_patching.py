"""Tables of patches and metrics, beside whole runs by hand."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.analysis.metrics import METRICS, Metric
from tui_transformer.analysis.patching import KINDS, START, kinds_of, sweep, table_of
from tui_transformer.engine.edits import Patch
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

IDS, OTHER = [5, 6, 7, 8, 9], [5, 10, 7, 8, 9]


@pytest.fixture(scope="module")
def traces():
    model = Model.load("copy", dtype="float64", device="cpu")
    return model.trace(ids=IDS), model.trace(ids=OTHER)


def shares(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_its_formula(traces, name):
    trace, other = traces
    new, old = (np.array(each["output.logits"])[4] for each in (other, trace))
    p, q = shares(old), shares(new)
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
    expected = -np.mean([np.log(shares(logits[i])[target]) for i, target in enumerate(targets) if target >= 0])
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
def test_every_place_is_patched_alone(traces, kind):
    trace, other = traces
    table = table_of(trace.program, kind)
    metric = Metric("difference", (11, 12))
    measured = list(sweep(trace, other, table, metric, range(4, 5)))
    assert [each.place for each in measured] == list(table.places)
    for each in measured[:: max(len(measured) // 5, 1)]:
        patch = Patch.between(trace, other, each.place.step, each.place.rows, each.place.heads)
        logits = trace.edited([patch])["output.logits"][4]
        assert each.value == pytest.approx(logits[11] - logits[12], abs=1e-12)


def test_a_table_has_every_layer_and_position_or_head(traces):
    program = traces[0].program
    places = table_of(program, "position").places
    assert {(each.row, each.column) for each in places} == {(row, i) for row in (-1, 0, 1) for i in range(5)}
    assert places[0].step == program.step(START).name
    assert {(each.row, each.column) for each in table_of(program, "head").places} == {
        (row, i) for row in (0, 1) for i in range(4)
    }


def test_an_encoder_decoder_has_tables_of_every_stack_and_attention():
    model = Model.load(REFERENCES / "bart", dtype="float64", device="cpu")
    own, other = (model.trace(ids=ids, decoder_ids=[2, 5, 6]) for ids in ([5, 6, 7, 8], [5, 9, 7, 8]))
    kinds = kinds_of(own.program)
    assert set(kinds) == {
        *("position", "head", "layer", "position:encoder", "layer:encoder"),
        *("head:encoder self-attention", "head:decoder self-attention"),
    }
    metric = Metric("logit", (9,))
    for kind in kinds:
        for each in sweep(own, other, kind, metric):
            place = each.place
            assert place.step.startswith("decoder.") == (":encoder" not in kind)
            edited = own.edited([Patch.between(own, other, place.step, place.rows, place.heads)])
            assert each.value == pytest.approx(edited["output.logits"][-1, 9], abs=1e-12)
    last = {each.place.row: each.value for each in sweep(own, other, "layer:encoder", metric)}
    assert last[1] == pytest.approx(metric.measure(other), abs=1e-12)
    assert [each.step for each in table_of(own.program, "head:cross").places] == [
        each.step for each in table_of(own.program, "head").places
    ]
    with pytest.raises(InputError, match="there is no middle with layers here: choose encoder or decoder"):
        table_of(own.program, "layer:middle")


def test_what_enters_the_first_layer_decides_everything_before_the_rest(traces):
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


def test_what_cannot_be_measured_is_refused(traces):
    trace, other = traces
    with pytest.raises(UsageError, match="no metric is called 'x'"):
        Metric("x")
    with pytest.raises(UsageError, match="about 2 tokens, not 1"):
        Metric("difference", (1,))
    with pytest.raises(UsageError, match="targets are of the metric loss"):
        Metric("logit", (), (1, 2))
    with pytest.raises(UsageError, match="every target is −1"):
        Metric("loss", (), (-1, -1))
    with pytest.raises(InputError, match="2 targets for 5 positions"):
        Metric("loss", (), (1, 2)).measure(trace, other, range(4, 5))
    with pytest.raises(InputError, match="no token 99999"):
        Metric("logit", (99_999,)).measure(trace, other, range(4, 5))
    with pytest.raises(UsageError, match="no kind is called"):
        table_of(trace.program, "word")
    longer = Model.load("copy", device="cpu").trace(ids=[*IDS, 4])
    with pytest.raises(InputError, match="name rows that both have"):
        list(sweep(trace, longer, table_of(trace.program, "layer"), Metric("logit", (1,)), range(4, 5)))
    attention = Model.load("attention").trace()
    with pytest.raises(InputError, match="no layers"):
        table_of(attention.program, "position")
    with pytest.raises(InputError, match="no logits of words"):
        Metric("divergence").measure(attention, attention, range(1))
