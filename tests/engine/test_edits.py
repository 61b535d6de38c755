"""Values set by hand: what they reach is computed again, the rest is shared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tui_transformer.engine.edits import Ablate, Edit, how_set
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 5, 3, 6, 4]
SCOPE = "decoder.0.self_attention"


@pytest.fixture
def model() -> Model:
    sizes = {"layers": 2, "heads": 4, "d_ff": 12, "norm": "pre", "tie_output": True, "bias": True}
    return Model.load("decoder", device="cpu", dtype="float64", **sizes)


@pytest.fixture
def trace(model) -> Trace:
    return model.trace(ids=IDS)


def changed_names(trace: Trace, other: Trace) -> set[str]:
    return {name for name in trace if not np.array_equal(trace[name], other[name])}


@pytest.mark.parametrize(
    ("weight", "index"),
    [
        ("embedding.tokens.weight", (5, 2)),
        (f"{SCOPE}.value.weight", (3, 7)),
        (f"{SCOPE}.output.bias", (1,)),
        ("decoder.norm.weight", (0,)),
    ],
)
def test_an_edited_weight_is_as_a_model_with_that_weight(model, trace, weight, index):
    def read(name, shape):
        array = np.array(model.weights.read(name, shape))
        if name == weight:
            array[index] = 0.75
        return array

    wanted = replace(model, weights=Weights(model.backend, read)).trace(ids=IDS)
    edited = trace.edited([Edit(weight, index, 0.75)])
    assert edited[weight][index] == 0.75
    assert changed_names(trace, edited)
    assert all(np.array_equal(edited[name], wanted[name]) for name in trace)


def by_hand(trace: Trace, edits: list[Edit]) -> dict[str, np.ndarray]:
    """The whole program run again, step after step, with the edits put in."""
    values = {name: trace[name][None] for name in trace.program.givens}
    values |= {name: trace[name].copy() for name in trace.program.weights}
    for step in trace.program.steps:
        values[step.name] = step.op.forward(trace.backend, *(values[name] for name in step.inputs)).copy()
        for edit in (edit for edit in edits if edit.name == step.name):
            values[step.name][(0, *edit.index)] = edit.value
    return values


@pytest.mark.parametrize(
    "edits",
    [
        [Edit("tokens", (2,), 7)],
        [Edit("embedding.output", (1, 3), -2.5)],
        [Edit(f"{SCOPE}.masked", (1, 2, 0), -math.inf)],
        [Edit(f"{SCOPE}.weights", (3, 4, 1), 1.0), Edit(f"{SCOPE}.weights", (3, 4, 2), 0.0)],
        [Edit(f"{SCOPE}.query", (0, 0, 0), 9.0), Edit("decoder.1.feed_forward.hidden", (4, 11), 3.0)],
        [Edit("output.logits", (0, 0), 4.0)],
    ],
)
@pytest.mark.parametrize("budget", [1 << 30, 0])
def test_edited_steps_are_as_a_full_run_with_them(model, edits, budget):
    trace = replace(model.trace(ids=IDS, budget=budget), block=20)
    edited, wanted = trace.edited(edits), by_hand(trace, edits)
    for name in trace.program.by_name:
        np.testing.assert_allclose(edited[name], wanted[name][0], rtol=1e-12, atol=1e-14, err_msg=name)
    for edit in edits:
        assert edited[edit.name][edit.index] == edit.value


def test_only_what_depends_on_the_edit_changes(trace):
    edited = trace.edited([Edit("decoder.1.self_attention.query", (1, 2, 0), 3.0)])
    reached = trace.program.downstream(["decoder.1.self_attention.query"])
    assert changed_names(trace, edited) <= reached | set(trace.program.aliases)
    assert "decoder.1.self_attention.key" not in reached
    assert "decoder.1.self_attention.scores" in reached


@pytest.mark.parametrize("asked_first", ["base", "edited"])
def test_what_no_edit_reaches_is_shared(trace, asked_first):
    edited = trace.edited([Edit("decoder.1.self_attention.query", (1, 2, 0), 3.0)])
    (trace if asked_first == "base" else edited).compute()
    reached = trace.program.downstream(["decoder.1.self_attention.query"])
    for name in trace.program.by_name:
        assert np.shares_memory(edited[name], trace[name]) == (name not in reached), name


def test_what_is_computed_for_an_edited_trace_is_there_for_its_base(trace):
    edited = trace.edited([Edit("output.logits", (0, 0), 4.0)])
    edited.compute()
    assert trace.held == set(trace.program.by_name) - {"output.logits", "output.probabilities"}
    assert edited.held == set(trace.program.by_name)


def test_counting_the_cost_of_an_edit_counts_what_is_to_be_done(trace):
    trace.compute()
    edited = trace.edited([Edit("output.logits", (0, 0), 4.0)])
    assert edited.pending(["output.probabilities"]) == trace.program.flops(trace.program.step("output.probabilities"))


def test_the_base_stays_as_it_was(trace):
    before = {name: trace[name].copy() for name in trace}
    trace.edited([Edit("embedding.tokens.weight", (5, 0), 9.0), Edit("embedding.output", (1, 1), 9.0)]).compute()
    assert all(np.array_equal(trace[name], before[name]) for name in before)


def test_no_edits_give_the_base_again(trace):
    edited = trace.edited([Edit("embedding.output", (0, 0), 1.0)])
    assert edited.edited([]) is edited
    assert trace.edited([]) is trace


def test_new_edits_come_after_the_earlier_ones(trace):
    edited = trace.edited([Edit("embedding.output", (0, 0), 1.0)]).edited([Edit("embedding.output", (1, 1), 2.0)])
    assert edited.base is trace
    assert edited["embedding.output"][0, 0] == 1.0
    assert edited["embedding.output"][1, 1] == 2.0


def test_an_alias_can_be_edited(trace):
    edited = trace.edited([Edit("decoder.0.output", (1, 3), 2.5)])
    assert edited["decoder.0.feed_forward.residual"][1, 3] == 2.5
    assert "output.logits" in changed_names(trace, edited)
    assert edited.explain_cell("decoder.0.output", (1, 3)).edited


def test_an_explanation_says_that_a_cell_was_set_by_hand(trace):
    edited = trace.edited([Edit("embedding.output", (0, 0), 1.0)])
    explained = edited.explain_cell("embedding.output", (0, 0))
    assert explained.edited
    assert explained.stored == 1.0
    assert explained.recomputed == pytest.approx(float(trace["embedding.output"][0, 0]), rel=1e-12)
    assert not edited.explain_cell("embedding.output", (0, 1)).edited


def test_windows_show_the_edits(trace):
    edited = trace.edited([Edit("embedding.output", (2, 3), 1.5), Edit("embedding.tokens.weight", (5, 1), 0.5)])
    assert edited.window("embedding.output", (range(2, 4), range(3, 5)))[0, 0] == 1.5
    assert edited.window("embedding.tokens.weight", (range(5, 6), range(2)))[0, 1] == 0.5


@pytest.mark.parametrize(
    ("edit", "says"),
    [
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
    ],
)
def test_an_edit_that_cannot_be_is_refused(trace, edit, says):
    with pytest.raises(InputError, match=says):
        trace.edited([edit])


def test_what_was_done_last_to_a_cell_is_told() -> None:
    name, region = "encoder.0.output", (range(2), range(3))
    done = (Edit(name, (0, 0), 1.0), Ablate(name, region), Edit(name, (1, 1), 2.0))
    told = [how_set(done, *cell) for cell in ((name, (0, 0)), (name, (1, 1)), (name, (1, 3)), ("tokens", (0,)))]
    assert told == ["ablated to 0", "set by hand", "", ""]


def test_the_mean_over_a_sentence_of_padding_is_that_of_all_positions() -> None:
    model = Model.load("encoder", vocabulary="nation", device="cpu", dtype="float64")
    pad = model.vocabulary.pad_id
    trace = model.trace(ids=[[pad, pad, pad], [4, 5, pad]])
    name = "encoder.0.feed_forward.output"
    region = tuple(range(size) for size in trace.program.shape(name))
    values, edited = trace[name], trace.edited([Ablate(name, region, mean=True)])[name]
    np.testing.assert_allclose(edited[0], np.broadcast_to(values[0].mean(axis=0), values[0].shape))
    np.testing.assert_allclose(edited[1], np.broadcast_to(values[1, :2].mean(axis=0), values[1].shape))
