"""Learning rates by step, and gradients that are too long."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.learning import optimizers
from tui_transformer.learning.optimizers import SCHEDULES


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_warm_up_is_linear(name):
    shares = [SCHEDULES[name](step, 10, 100) for step in range(1, 11)]
    assert shares == pytest.approx([step / 10 for step in range(1, 11)])


@pytest.mark.parametrize("name", SCHEDULES)
def test_without_a_warm_up_the_first_step_is_a_whole_one(name):
    assert SCHEDULES[name](1, 0, 100) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "step", "share"),
    [
        ("constant", 90, 1.0),
        ("cosine", 55, 0.5),
        ("cosine", 32, 0.5 * (1 + math.cos(math.pi * 22 / 90))),
        ("cosine", 100, 0.0),
        ("cosine", 120, 0.0),
        ("inverse-sqrt", 40, 0.5),
        ("inverse-sqrt", 1000, 0.1),
    ],
)
def test_after_the_warm_up(name, step, share):
    assert SCHEDULES[name](step, 10, 100) == pytest.approx(share, abs=1e-12)


def gradients() -> dict[str, np.ndarray]:
    return {
        "decoder.0.a.weight": np.array([[3.0, 0.0]]),
        "decoder.1.b.bias": np.array([4.0]),
        "embedding.t.weight": np.zeros(2),
    }


def test_the_norm_is_of_all_gradients_together():
    assert optimizers.norm(optimizers.squares(gradients())) == pytest.approx(5)


def test_layers_have_norms_of_their_own():
    norms = optimizers.layer_norms(optimizers.squares(gradients()))
    assert norms == pytest.approx({"decoder.0": 3.0, "decoder.1": 4.0, "embedding": 0.0})


def test_long_gradients_are_scaled_to_the_longest_allowed():
    slopes = gradients()
    optimizers.clip(slopes, 5.0, 1.0)
    assert optimizers.norm(optimizers.squares(slopes)) == pytest.approx(1, rel=1e-5)
    assert slopes["decoder.0.a.weight"][0, 0] / slopes["decoder.1.b.bias"][0] == pytest.approx(3 / 4)


def test_short_gradients_stay_as_they_are():
    slopes = gradients()
    optimizers.clip(slopes, 5.0, 5.1)
    assert all(np.array_equal(slopes[name], gradients()[name]) for name in slopes)


@pytest.mark.parametrize(
    ("weight", "layer"),
    [
        ("decoder.0.self_attention.query.weight", "decoder.0"),
        ("embedding.tokens.weight", "embedding"),
        ("decoder.embedding.positions.weight", "decoder.embedding"),
        ("decoder.norm.weight", "decoder.norm"),
        ("output.logits.bias", "output"),
    ],
)
def test_the_layer_of_a_weight(weight, layer):
    assert optimizers.layer_of(weight) == layer
