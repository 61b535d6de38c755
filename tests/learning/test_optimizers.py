"""Optimisers against their formulas, written out for single numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.learning.optimizers import OPTIMIZERS, Adam, AdamW, Optimizer, Sgd

F64 = numpy_backend("float64")
START, RATE, DECAY = 0.8, 0.1, 0.05
GRADIENTS = (0.5, -2.0, 0.25, 1e-3, 4.0)


def moved(optimizer: Optimizer, decay: float) -> list[float]:
    """The weight after each gradient."""
    weight = np.array([START])
    state = {slot: np.zeros(1) for slot in optimizer.slots}
    weights = []
    for step, gradient in enumerate(GRADIENTS, 1):
        optimizer.update(F64, weight, np.array([gradient]), state, RATE, step, decay)
        weights.append(float(weight[0]))
    return weights


def sgd(decay: float) -> list[float]:
    weight, velocity, weights = START, 0.0, []
    for gradient in GRADIENTS:
        velocity = 0.9 * velocity + (gradient + decay * weight)
        weight -= RATE * velocity
        weights.append(weight)
    return weights


def adam(decay: float, *, decoupled: bool) -> list[float]:
    weight, mean, square, weights = START, 0.0, 0.0, []
    for t, gradient in enumerate(GRADIENTS, 1):
        if decoupled:
            weight -= RATE * decay * weight
        else:
            gradient += decay * weight
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        unbiased, spread = mean / (1 - 0.9**t), square / (1 - 0.999**t)
        weight -= RATE * unbiased / (math.sqrt(spread) + 1e-8)
        weights.append(weight)
    return weights


@pytest.mark.parametrize("decay", [0.0, DECAY])
def test_sgd_has_momentum(decay):
    assert moved(Sgd(), decay) == pytest.approx(sgd(decay), rel=1e-12)


@pytest.mark.parametrize("decay", [0.0, DECAY])
def test_adam_corrects_its_means(decay):
    assert moved(Adam(), decay) == pytest.approx(adam(decay, decoupled=False), rel=1e-12)


@pytest.mark.parametrize("decay", [0.0, DECAY])
def test_adamw_decays_apart_from_the_gradient(decay):
    assert moved(AdamW(), decay) == pytest.approx(adam(decay, decoupled=True), rel=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_and_weights_keep_their_precision_and_place(name):
    optimizer, backend = OPTIMIZERS[name](), numpy_backend("float32")
    weight = np.ones((2, 3), np.float32)
    state = {slot: np.zeros_like(weight) for slot in optimizer.slots}
    before = dict(state)
    optimizer.update(backend, weight, np.full((2, 3), 0.5, np.float32), state, RATE, 1, DECAY)
    assert weight.dtype == np.float32
    assert (weight < 1).all()
    assert all(state[slot] is before[slot] and before[slot].any() for slot in state)
