"""The backward pass: only weights, only norms, and values that an operation says it reads, all else let go."""

from __future__ import annotations

import numpy as np
import pytest
from op_cases import CASES

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import cross_entropy, gradients, kept_for_backward, weight_gradients
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


# Cross-entropy with label smoothing

COUNTED = np.array([[2, -1, 0], [4, 3, -1]])


@pytest.fixture
def logits() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((2, 3, 5)) * 3


def written_out(logits: np.ndarray, smoothing: float) -> float:
    """−Σ q log p at every counted position, in loops."""
    losses = []
    for row, target in zip(logits.reshape(-1, 5), COUNTED.reshape(-1), strict=True):
        if target != -1:
            shares = np.exp(row) / np.exp(row).sum()
            wanted = np.full(5, smoothing / 5)
            wanted[target] += 1 - smoothing
            losses.append(-(wanted * np.log(shares)).sum())
    return float(np.mean(losses))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_the_cross_entropy_with_smoothed_targets(logits, smoothing):
    loss, _ = cross_entropy(F64, logits, COUNTED, smoothing)
    assert loss.mean == pytest.approx(written_out(logits, smoothing), rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_the_loss_is_its_slope(logits, smoothing):
    _, gradient = cross_entropy(F64, logits, COUNTED, smoothing)
    width = 1e-6
    for index in np.ndindex(logits.shape):
        moved = [logits.copy(), logits.copy()]
        moved[0][index] -= width
        moved[1][index] += width
        slope = (written_out(moved[1], smoothing) - written_out(moved[0], smoothing)) / (2 * width)
        assert gradient[index] == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_positions_that_are_not_counted_have_no_gradient(logits):
    _, gradient = cross_entropy(F64, logits, COUNTED, 0.1)
    assert not gradient[COUNTED == -1].any()


def test_the_right_ones_are_counted(logits):
    logits[0, 0, 2] = logits[1, 0, 4] = 50
    logits[0, 2, 0] = logits[1, 1, 3] = -50
    logits[0, 1] = 0
    loss, _ = cross_entropy(F64, logits, COUNTED)
    assert (loss.right, loss.counted, loss.accuracy) == (2, 4, 0.5)


def test_parts_of_a_batch_add_up_to_the_whole(logits):
    whole, gradient = cross_entropy(F64, logits, COUNTED, 0.1)
    parts = [cross_entropy(F64, logits[i : i + 1], COUNTED[i : i + 1], 0.1, total=4) for i in range(2)]
    assert sum(loss.mean for loss, _ in parts) == pytest.approx(whole.mean, rel=1e-12)
    assert np.allclose(np.concatenate([part for _, part in parts]), gradient, rtol=1e-12, atol=0)


def test_the_logits_are_left_as_they_are(logits):
    before = logits.copy()
    cross_entropy(F64, logits, COUNTED, 0.1)
    assert np.array_equal(logits, before)
