"""Optimisers, schedules and clipping."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.learning import optimizers
from tui_transformer.learning.optimizers import OPTIMIZERS, SCHEDULES, Optimizer

# Optimisers against their formulas, written out for single numbers
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
def test_sgd_has_momentum_adam_corrects_its_means_and_adamw_decays_apart_from_the_gradient(decay):
    assert moved(OPTIMIZERS["sgd"], decay) == pytest.approx(sgd(decay), rel=1e-12)
    assert moved(OPTIMIZERS["adam"], decay) == pytest.approx(adam(decay, decoupled=False), rel=1e-12)
    assert moved(OPTIMIZERS["adamw"], decay) == pytest.approx(adam(decay, decoupled=True), rel=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_and_weights_keep_their_precision_and_place(name):
    optimizer, backend = OPTIMIZERS[name], numpy_backend("float32")
    weight = np.ones((2, 3), np.float32)
    state = {slot: np.zeros_like(weight) for slot in optimizer.slots}
    before = dict(state)
    optimizer.update(backend, weight, np.full((2, 3), 0.5, np.float32), state, RATE, 1, DECAY)
    assert weight.dtype == np.float32
    assert (weight < 1).all()
    assert all(state[slot] is before[slot] and before[slot].any() for slot in state)


# Learning rates by step, and gradients that are too long
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_warm_up_is_linear_and_without_one_the_first_step_is_a_whole_one(name):
    shares = [SCHEDULES[name](step, 10, 100) for step in range(1, 11)]
    assert shares == pytest.approx([step / 10 for step in range(1, 11)])
    assert SCHEDULES[name](1, 0, 100) == pytest.approx(1, abs=1e-3)


def test_after_the_warm_up():
    for name, step, share in (
        ("constant", 90, 1.0),
        ("cosine", 55, 0.5),
        ("cosine", 32, 0.5 * (1 + math.cos(math.pi * 22 / 90))),
        ("cosine", 100, 0.0),
        ("cosine", 120, 0.0),
        ("inverse-sqrt", 40, 0.5),
        ("inverse-sqrt", 1000, 0.1),
    ):
        assert SCHEDULES[name](step, 10, 100) == pytest.approx(share, abs=1e-12)


def test_gradients_that_are_too_long_together_are_scaled_and_layers_have_norms_of_their_own():
    given = {
        "decoder.0.a.weight": np.array([[3.0, 0.0]]),
        "decoder.1.b.bias": np.array([4.0]),
        "embedding.t.weight": np.zeros(2),
    }
    slopes = {name: each.copy() for name, each in given.items()}
    assert sum(optimizers.squares(slopes).values()) == pytest.approx(5**2)
    norms = optimizers.layer_norms(optimizers.squares(slopes))
    assert norms == pytest.approx({"decoder.0": 3.0, "decoder.1": 4.0, "embedding": 0.0})
    # short ones stay as they are
    optimizers.clip(slopes, 5.0, 5.1)
    assert all(np.array_equal(slopes[name], given[name]) for name in slopes)
    # long ones are scaled to the longest allowed
    optimizers.clip(slopes, 5.0, 1.0)
    assert sum(optimizers.squares(slopes).values()) == pytest.approx(1, rel=1e-5)
    assert slopes["decoder.0.a.weight"][0, 0] / slopes["decoder.1.b.bias"][0] == pytest.approx(3 / 4)


def test_the_layer_of_a_weight():
    for weight, layer in (
        ("decoder.0.self_attention.query.weight", "decoder.0"),
        ("embedding.tokens.weight", "embedding"),
        ("decoder.embedding.positions.weight", "decoder.embedding"),
        ("decoder.norm.weight", "decoder.norm"),
        ("output.logits.bias", "output"),
    ):
        assert optimizers.layer_of(weight) == layer
