"""Experiments that share a pass give what each gives alone."""

from __future__ import annotations

from functools import partial

import pytest

from tui_transformer.analysis.effects import effects, in_passes
from tui_transformer.analysis.metrics import METRICS, Metric
from tui_transformer.analysis.patching import sweep, table_of
from tui_transformer.engine.targets import every
from tui_transformer.model import Model

IDS, OTHER = [5, 6, 7, 8, 9], [5, 10, 7, 8, 9]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("copy", dtype="float64", device="cpu")


def test_neighbours_that_change_the_same_steps_share_a_pass(model):
    trace = model.trace(ids=IDS)
    targets = every(trace.program, "head")
    dealt = list(in_passes(trace, ((each, each.edits(trace.program)) for each in targets)))
    assert [len(group) for group, _, _ in dealt] == [4, 4]
    assert [each for group, _, _ in dealt for each in group] == list(targets)
    assert all(edited.batch == len(items) == 4 for _, edited, items in dealt)


def test_long_sentences_are_alone_in_a_pass(model):
    trace = model.trace(ids=IDS)
    experiments = ((each, each.edits(trace.program)) for each in every(trace.program, "head"))
    dealt = list(in_passes(trace, experiments, rows=10))
    assert [len(group) for group, _, _ in dealt] == [2] * 4


@pytest.mark.parametrize("name", [None, *METRICS])
@pytest.mark.parametrize("mean", [False, True])
def test_effects_are_those_of_each_alone(model, name, mean):
    metric = None if name is None else Metric(name, (11, 12)[: METRICS[name].tokens])
    trace, targets = model.trace(ids=IDS), every(model.program(len(IDS)), "head")
    measured = partial(effects, trace, targets, mean=mean, metric=metric, positions=range(2, 5))
    together, alone = ([effect for _, effect in each] for each in (measured(), measured(rows=1)))
    for one, other in zip(together, alone, strict=True):
        assert (one.change, one.size) == pytest.approx((other.change, other.size), rel=1e-9, abs=1e-12)


def test_one_sentence_of_a_batch_is_measured_as_alone(model):
    batch, single = model.trace(ids=[OTHER, IDS]), model.trace(ids=IDS)
    targets = every(single.program, "head")
    together = [each.divergence for _, each in effects(batch, targets, item=1)]
    assert together == pytest.approx([each.divergence for _, each in effects(single, targets)], rel=1e-9)


def test_a_table_is_that_of_each_place_alone(model):
    trace, other = model.trace(ids=IDS), model.trace(ids=OTHER)
    for kind in ("position", "head", "layer"):
        table, metric = table_of(trace.program, kind), Metric("difference", (11, 12))
        together = [each.value for each in sweep(trace, other, table, metric, range(4, 5))]
        alone = [each.value for each in sweep(trace, other, table, metric, range(4, 5), rows=1)]
        assert together == pytest.approx(alone, rel=1e-9, abs=1e-12)
