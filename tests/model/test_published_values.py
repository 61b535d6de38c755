"""Numbers that tutorials print are the numbers that are computed."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.model import Model

ATTENTION = "encoder.0.self_attention"
PRINTED = {
    "scores": ([[0.9803, 0.5904, 0.6611], [0.6106, 1.2708, 1.0522], [2.7333, 3.6344, 15.0921]], 1e-4),
    "weights": ([[1, 0, 0], [0.4182, 0.5818, 0], [0.0021, 0.0032, 0.9947]], 1e-4),
    "context": ([[1.2, 0.7, 0.5, 0.05], [0.7928, 0.5255, 0.5582, 0.0558], [2.1924, 1.2959, 0.003, 3.0938]], 1e-4),
}
ENCODING = {
    (1, 0): 0.841471,
    (1, 2): 0.76172,
    (1, 4): 0.681561,
    (1, 126): 0.000115478,
    (2, 4): 0.99748,
    (1, 1): 0.540302,
    (1, 3): 0.647906,
    (2, 5): 0.0709483,
}


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.mark.parametrize("step", PRINTED)
def test_the_attention_example_gives_the_printed_values(step, dtype):
    trace = Model.load("attention", device="cpu", dtype=dtype).trace()
    printed, tolerance = PRINTED[step]
    assert np.abs(trace[f"{ATTENTION}.{step}"][0] - printed).max() <= 0.5 * tolerance + 1e-6


def test_the_causal_mask_of_the_example_hides_later_keys():
    masked = Model.load("attention", device="cpu").trace()[f"{ATTENTION}.masked"][0]
    assert np.array_equal(np.isneginf(masked), np.triu(np.ones((3, 3), dtype=bool), 1))


@pytest.mark.parametrize("place", ENCODING)
def test_the_positional_encoding_has_the_printed_values(place, dtype):
    trace = Model.load("encoder", device="cpu", dtype=dtype, d_model=128).trace(ids=[2, 3, 4])
    assert trace["embedding.positions"][place] == pytest.approx(ENCODING[place], rel=1e-5)
