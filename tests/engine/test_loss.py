"""Cross-entropy with label smoothing, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.gradient import cross_entropy

F64 = numpy_backend("float64")
TARGETS = np.array([[2, -1, 0], [4, 3, -1]])


@pytest.fixture
def logits() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((2, 3, 5)) * 3


def written_out(logits: np.ndarray, smoothing: float) -> float:
    """−Σ q log p at every counted position, in loops."""
    losses = []
    for row, target in zip(logits.reshape(-1, 5), TARGETS.reshape(-1), strict=True):
        if target != -1:
            shares = np.exp(row) / np.exp(row).sum()
            wanted = np.full(5, smoothing / 5)
            wanted[target] += 1 - smoothing
            losses.append(-(wanted * np.log(shares)).sum())
    return float(np.mean(losses))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_the_cross_entropy_with_smoothed_targets(logits, smoothing):
    loss, _ = cross_entropy(F64, logits, TARGETS, smoothing)
    assert loss.mean == pytest.approx(written_out(logits, smoothing), rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_the_loss_is_its_slope(logits, smoothing):
    _, gradient = cross_entropy(F64, logits, TARGETS, smoothing)
    width = 1e-6
    for index in np.ndindex(logits.shape):
        moved = [logits.copy(), logits.copy()]
        moved[0][index] -= width
        moved[1][index] += width
        slope = (written_out(moved[1], smoothing) - written_out(moved[0], smoothing)) / (2 * width)
        assert gradient[index] == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_positions_that_are_not_counted_have_no_gradient(logits):
    _, gradient = cross_entropy(F64, logits, TARGETS, 0.1)
    assert not gradient[TARGETS == -1].any()


def test_the_right_ones_are_counted(logits):
    logits[0, 0, 2] = logits[1, 0, 4] = 50
    logits[0, 2, 0] = logits[1, 1, 3] = -50
    logits[0, 1] = 0
    loss, _ = cross_entropy(F64, logits, TARGETS)
    assert (loss.right, loss.counted, loss.accuracy) == (2, 4, 0.5)


def test_parts_of_a_batch_add_up_to_the_whole(logits):
    whole, gradient = cross_entropy(F64, logits, TARGETS, 0.1)
    parts = [cross_entropy(F64, logits[i : i + 1], TARGETS[i : i + 1], 0.1, total=4) for i in range(2)]
    assert sum(loss.mean for loss, _ in parts) == pytest.approx(whole.mean, rel=1e-12)
    assert np.allclose(np.concatenate([part for _, part in parts]), gradient, rtol=1e-12, atol=0)


def test_the_logits_are_left_as_they_are(logits):
    before = logits.copy()
    cross_entropy(F64, logits, TARGETS, 0.1)
    assert np.array_equal(logits, before)
