"""The backward pass: only weights, only norms, and values that an operation says it reads, all else let go."""

from __future__ import annotations

import numpy as np
import pytest
from op_cases import CASES

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients, kept_for_backward, weight_gradients
from tui_transformer.engine.ops.base import RESULT
from tui_transformer.model import Model

F64 = numpy_backend("float64")
IDS = [[2, 5, 3, 6, 4], [3, 3, 2, 7, 6]]
TARGETS = [[5, -1, 6, 4, 7], [2, 4, -1, -1, 5]]


@pytest.fixture(params=["pre", "post"])
def model(request) -> Model:
    return Model.load(
        "decoder", device="cpu", dtype="float64", d_model=8, heads=2, d_ff=6, norm=request.param, bias=True, layers=2
    )


@pytest.mark.parametrize("name", CASES)
def test_backward_reads_nothing_but_what_the_operation_says_and_changes_none_of_it(name):
    case = CASES[name](np.random.default_rng(3))
    inputs = case.on(F64)
    output = case.op.forward(F64, *inputs)
    share = np.random.default_rng(4).standard_normal(output.shape)
    arrays = [share, output, *inputs]
    before = [array.copy() for array in arrays]
    wanted = case.op.backward(F64, share, output, *inputs)
    assert all(np.array_equal(array, old, equal_nan=True) for array, old in zip(arrays, before, strict=True))
    places = case.op.undone_from
    if places is not None:
        inputs = [array if place in places else None for place, array in enumerate(inputs)]
        output = output if RESULT in places else None
    for slope, right in zip(case.op.backward(F64, share, output, *inputs), wanted, strict=True):
        assert right is None if slope is None else np.array_equal(slope, right)


def test_the_gradients_of_the_weights_alone_are_the_same(model):
    whole = gradients(model.trace(ids=IDS), TARGETS, smoothing=0.1)
    loss, alone = weight_gradients(model.trace(ids=IDS, budget=0), TARGETS, smoothing=0.1)
    assert loss.mean == whole.loss
    assert set(alone) == set(model.program(5).weights)
    assert all(np.array_equal(alone[name], whole.values[name]) for name in alone)


def test_the_slope_of_the_smoothed_loss_is_the_gradient(model):
    trace = model.trace(ids=IDS)
    name, index, width = "decoder.1.feed_forward.hidden.weight", (3, 2), 1e-5
    value = float(trace[name][index])
    losses = [gradients(trace.edited([Edit(name, index, value + move)]), TARGETS, 0.2).loss for move in (-width, width)]
    slope = (losses[1] - losses[0]) / (2 * width)
    assert gradients(trace, TARGETS, 0.2).values[name][index] == pytest.approx(slope, rel=1e-6)


def test_scores_are_not_kept_for_the_backward_pass(model):
    kept = {name.removeprefix("decoder.0.") for name in kept_for_backward(model.program(5))}
    assert {"self_attention.query", "self_attention.weights", "feed_forward.activation"} <= kept
    assert kept.isdisjoint({"self_attention.scores", "self_attention.scaled", "self_attention.masked"})
