"""Cells set, regions ablated or patched: what they reach is as in a full run, in windows too, the rest is shared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from comparing import assert_same, cut, random_region
from reference import IDS, REFERENCES, in_float64, trace_of
from refusing import refuses
from strict import strict_backend

from tui_transformer.engine.edits import Ablate, Change, Edit, Patch
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights
from tui_transformer.errors import InputError
from tui_transformer.model import Model

SCOPE = "decoder.0.self_attention"
CONTEXT, STREAM, NEURONS = f"{SCOPE}.context", "decoder.0.output", "decoder.1.feed_forward.activation"
Setter = Callable[[np.ndarray], object]
SIZES = {"layers": 2, "heads": 4, "d_ff": 12, "norm": "pre", "tie_output": True, "bias": True}


@pytest.fixture(scope="module")
def model() -> Model:
    return in_float64("decoder", **SIZES)


@pytest.fixture
def trace(model) -> Trace:
    return model.trace(ids=IDS)


def by_hand(trace: Trace, changes: Sequence[tuple[str, Setter]]) -> dict[str, np.ndarray]:
    """The whole program run again, step after step, with steps changed in place."""
    values = {given: trace[given][None] for given in trace.program.givens}
    values |= {weight: trace[weight] for weight in trace.program.weights}
    for step in trace.program.steps:
        values[step.name] = step.op.forward(trace.backend, *(values[source] for source in step.inputs)).copy()
        for name, set_values in changes:
            if step.name == trace.program.aliases.get(name, name):
                set_values(values[step.name][0])
    return {step.name: values[step.name][0] for step in trace.program.steps}


def put(where: object, value: object) -> Setter:
    """Cells set to values, or to what a function makes of the array."""
    return lambda array: array.__setitem__(where, value(array) if callable(value) else value)


def cells(*edits: Edit) -> tuple[tuple[Change, Setter], ...]:
    """Cells that are set, by edits and by hand."""
    return tuple((edit, put(edit.index, edit.value)) for edit in edits)


REGIONS: dict[str, tuple[Change, Setter]] = {
    "a head set to 0": (Ablate(CONTEXT, (range(2, 3), range(5), range(2))), put(2, 0.0)),
    "a head set to its mean": (
        Ablate(CONTEXT, (range(1, 2), range(5), range(2)), mean=True),
        put(1, lambda x: x[1].mean(axis=0)),
    ),
    "neurons set to their means": (
        Ablate(NEURONS, (range(5), range(3, 5)), mean=True),
        put(np.s_[:, 3:5], lambda x: x[:, 3:5].mean(axis=0)),
    ),
    "a position set to the mean": (
        Ablate(STREAM, (range(4, 5), range(8)), mean=True),
        put(4, lambda x: x.mean(axis=0)),
    ),
    "weights set to 0": (Ablate(f"{SCOPE}.weights", (range(1, 2), range(2, 4), range(3))), put(np.s_[1, 2:4, :3], 0.0)),
    "weights set to means": (
        Ablate(f"{SCOPE}.weights", (range(1), range(5), range(1, 3)), mean=True),
        put(np.s_[0, :, 1:3], lambda x: x[0, :, 1:3].mean(axis=0)),
    ),
    "rows patched": (
        Patch.of(
            STREAM, np.concatenate([np.zeros(8), np.arange(16), np.zeros(16)]).reshape(5, 8), (range(1, 3), range(8))
        ),
        put(np.s_[1:3], np.arange(16).reshape(2, 8)),
    ),
}
CASES: dict[str, tuple[tuple[Change, Setter], ...]] = {name: (case,) for name, case in REGIONS.items()} | {
    "a token": cells(Edit("tokens", (2,), 7)),
    "a cell of the stream": cells(Edit("embedding.output", (1, 3), -2.5)),
    "a score hidden": cells(Edit(f"{SCOPE}.masked", (1, 2, 0), -math.inf)),
    "two weights": cells(Edit(f"{SCOPE}.weights", (3, 4, 1), 1.0), Edit(f"{SCOPE}.weights", (3, 4, 2), 0.0)),
    "two steps": cells(Edit(f"{SCOPE}.query", (0, 0, 0), 9.0), Edit("decoder.1.feed_forward.hidden", (4, 11), 3.0)),
    "a logit": cells(Edit("output.logits", (0, 0), 4.0)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("budget", [1 << 30, 0])
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_changed_steps_are_as_a_full_run_with_them(model, case, budget, block):
    trace = replace(model.trace(ids=IDS, budget=budget), block=block)
    wanted = by_hand(trace, [(change.name, set_values) for change, set_values in CASES[case]])
    edited = trace.edited([change for change, _ in CASES[case]])
    assert_same(edited, wanted, rtol=1e-11)
    for change in edited.edits:
        if isinstance(change, Edit):
            assert edited[change.name][change.index] == change.value


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("budget", [1 << 30, 0])
def test_windows_of_changed_steps_are_slices(model, case, budget):
    changes, trace = [change for change, _ in CASES[case]], replace(model.trace(ids=IDS, budget=budget), block=9)
    edited, wanted, rng = trace.edited(changes), model.trace(ids=IDS).edited(changes), np.random.default_rng(3)
    for name in edited:
        region = random_region(rng, edited.program.shape(name))
        part = cut(wanted[name], region)
        np.testing.assert_allclose(edited.window(name, region), part, rtol=1e-11, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("first", ["base", "edited"])
def test_what_no_change_reaches_is_shared(trace, case, first):
    edited = trace.edited([change for change, _ in CASES[case]])
    (trace if first == "base" else edited).compute()
    reached = trace.program.downstream(change.name for change in edited.edits)
    for name in trace.program.by_name:
        assert np.shares_memory(edited[name], trace[name]) == (name not in reached), name


def test_what_the_base_has_is_not_computed_again_and_is_kept_there_whatever_the_budget_of_the_edits(trace):
    trace.edited([REGIONS["neurons set to their means"][0]], budget=0)["output.logits"]
    assert CONTEXT in trace.held
    trace.compute()
    edited = trace.edited([REGIONS["a head set to 0"][0]], budget=0)
    edited["output.logits"]
    assert edited.held == trace.held - trace.program.downstream([CONTEXT])
    trace.compute()
    seen: list[str] = []
    edited = trace.edited([REGIONS["a head set to 0"][0]])
    edited.compute(before=lambda step: seen.append(step.name))
    assert seen[:2] == [CONTEXT, f"{SCOPE}.concat"]
    assert np.array_equal(np.delete(edited[CONTEXT], 2, axis=0), np.delete(trace[CONTEXT], 2, axis=0))
    assert trace[CONTEXT][2].any()


def test_changes_are_made_in_order_and_pass_no_gradient_on(trace, model):
    region = (range(5), range(8))
    edited = trace.edited([Ablate(STREAM, region), Edit(STREAM, (1, 3), 2.0), Ablate(STREAM, (range(1), range(8)))])
    assert edited[STREAM][1, 3] == 2.0
    assert np.count_nonzero(edited[STREAM]) == 1
    every = tuple(range(size) for size in trace.program.shape(CONTEXT))
    computed = gradients(trace.edited([Ablate(CONTEXT, every)]), [3, -1, 2, 5, 7]).values
    assert not computed[f"{SCOPE}.weights"].any()
    assert not computed[f"{SCOPE}.value"].any()
    assert computed[CONTEXT].any()


def test_a_step_of_another_trace_takes_the_place_of_this_one_in_rows_too(model, trace):
    other = model.trace(ids=[7, 1, 4, 4, 2], budget=0)
    edited = trace.edited([Patch.between(trace, other, STREAM)])
    assert np.array_equal(edited[STREAM], other[STREAM])
    np.testing.assert_allclose(edited["output.logits"], other["output.logits"], rtol=1e-12)
    # rows of a longer sentence
    other = model.trace(ids=[7, 1, 4, 4, 2, 6, 3])
    edited = trace.edited([Patch.between(trace, other, STREAM, rows=range(4, 5))])
    assert np.array_equal(edited[STREAM][4], other[STREAM][4])
    assert np.array_equal(edited[STREAM][:4], trace[STREAM][:4])
    # items of a batch
    trace, other = model.trace(ids=[IDS, IDS[::-1]]), model.trace(ids=[[1] * 5, [7] * 5])
    edited = trace.edited([Patch.between(trace, other, STREAM, rows=range(2))])
    assert np.array_equal(edited[STREAM][:, :2], other[STREAM][:, :2])
    assert np.array_equal(edited[STREAM][:, 2:], trace[STREAM][:, 2:])


@pytest.mark.parametrize("block", [7, 1 << 20])
def test_weights_of_a_head_are_patched_in_windows(model, block):
    trace, other = (replace(model.trace(ids=ids, budget=0), block=block) for ids in (IDS, [7, 1, 4, 4, 2]))
    name = f"{SCOPE}.weights"
    edited = trace.edited([Patch.between(trace, other, name, rows=range(1, 3), heads=range(2, 4))])
    assert np.array_equal(edited.window(name, (range(2, 3), range(2, 3), range(5)))[0, 0], other[name][2, 2])
    wanted = trace[name].copy()
    wanted[2:4, 1:3] = other[name][2:4, 1:3]
    np.testing.assert_allclose(edited[name], wanted, rtol=1e-12)


def test_explain_says_which_cells_are_edited(trace):
    edited = trace.edited([REGIONS["a head set to 0"][0]])
    explained = edited.explain(CONTEXT, head=2, row=3, column=1)
    assert (explained.edited, explained.stored) == (True, 0.0)
    assert explained.recomputed == pytest.approx(trace[CONTEXT][2, 3, 1])
    assert not edited.explain(CONTEXT, head=1, row=3, column=1).edited
    cell = trace.edited([Edit("embedding.output", (0, 0), 1.0)]).explain("embedding.output")
    assert (cell.edited, cell.stored) == (True, 1.0)
    assert cell.recomputed == pytest.approx(float(trace["embedding.output"][0, 0]), rel=1e-12)


def test_changes_on_a_device_are_as_on_the_cpu(model):
    on_device = Model(model.name, model.config, Weights(strict_backend(), model.weights.read), None)
    cpu, device = (each.trace(ids=[IDS, IDS[::-1]]) for each in (model, on_device))
    for case in (*CASES.values(), cells(Edit(f"{SCOPE}.query.weight", (0, 0), 0.5))):
        changes = [change for change, _ in case]
        assert_same(device.edited(changes), cpu.edited(changes), ["output.logits"], atol=0)


@pytest.mark.parametrize("folder", sorted(path.name for path in REFERENCES.iterdir()))
def test_every_family_can_be_changed_anywhere(folder):
    trace = trace_of(folder)
    for step in trace.program.steps[:: max(1, len(trace.program.steps) // 12)]:
        if not step.op.integer:
            region = tuple(range(size // 2, size) for size in step.shape)
            edited = trace.edited([Ablate(step.name, region, mean=True)])
            cells, above = np.ix_(*region), np.ix_(*region[:-2], range(step.shape[-2]), region[-1])
            means = put(cells, lambda array, above=above: array[above].mean(axis=-2, keepdims=True))
            wanted = by_hand(trace, [(step.name, means)])
            assert_same(edited, wanted, [trace.program.steps[-1].name], rtol=1e-9, atol=1e-12)


def test_a_change_that_cannot_be_is_refused_nor_a_patch_that_does_not_fit(trace, model):
    for change, says in (
        (Ablate("no.such", (range(1),)), "no step is called"),
        (Edit("no.such.step", (0,), 1.0), "no step is called"),
        (Edit("embedding.output", (5, 0), 1.0), r"embedding\.output has no cell \[5, 0\]: it is 5 × 8"),
        (Edit("embedding.output", (0,), 1.0), "has no cell"),
        (Edit("decoder.norm.weight", (-1,), 1.0), "has no cell"),
        (Edit("embedding.output", (0, 0), math.nan), "not to NaN"),
        (Edit("tokens", (0,), 8), "whole numbers from 0 to 7, not 8"),
        (Edit("tokens", (0,), -1), "whole numbers from 0 to 7, not -1"),
        (Edit("tokens", (0,), 1.5), "whole numbers from 0 to 7, not 1.5"),
        (Edit("tokens", (0,), math.inf), "whole numbers from 0 to 7, not inf"),
        (Edit("input.visible", (0,), 0), r"input\.visible is an input"),
        (Ablate("tokens", (range(1),)), "tokens holds whole numbers: change the sentence instead"),
        (Ablate(STREAM, (range(5), range(9))), r"feed_forward\.residual has no region \[0–4, 0–8\]: it is 5 × 8"),
        (Ablate(STREAM, (range(5),)), "has no region"),
        (Ablate(STREAM, (range(2, 2), range(8))), "has no region"),
        (Patch.of(STREAM, np.zeros((5, 8))), None),
        (Patch.of(STREAM, np.zeros((4, 8))), "values of 4 × 8 fit neither it nor the region"),
        (Patch.of(STREAM, np.zeros((2, 8)), (range(1, 3), range(8))), None),
        (Patch.of(STREAM, np.zeros((3, 8)), (range(1, 3), range(8))), "values of 3 × 8 fit neither"),
        (Patch.of(STREAM, np.zeros((6, 8))), "values of 6 × 8 fit neither"),
        (Patch.of(f"{SCOPE}.query.weight", np.zeros((8, 8))), None),
        (Patch.of(f"{SCOPE}.query.weight", np.zeros((8, 9))), "values of 8 × 9 fit neither"),
    ):
        with pytest.raises(InputError, match=says) if says else nullcontext():
            trace.edited([change])
    other = model.trace(ids=[1, 2, 3, 4])
    refuses(r"is 5 × 8 here and 4 × 8 there: name rows that both have", lambda: Patch.between(trace, other, STREAM))
    refuses("the last axis differs", lambda: Patch.between(trace, other, f"{SCOPE}.weights", rows=range(2)))
    refuses("has no heads", lambda: Patch.between(trace, trace, STREAM, heads=range(1)))
    refuses("has no row 5", lambda: Patch.between(trace, trace, STREAM, rows=range(5, 6)))
