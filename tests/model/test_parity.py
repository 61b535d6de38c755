"""The models that come with the program compute what another implementation computes, and what tutorials print."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
NOT_STORED = {"tokens", "decoder.tokens"}


def difference(got: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference of finite cells, relative to the largest finite value."""
    finite = np.isfinite(wanted)
    return float(np.abs(got[finite] - wanted[finite]).max() / np.abs(wanted[finite]).max())


@pytest.fixture(params=sorted(TOLERANCES))
def dtype(request):
    return request.param


@pytest.fixture
def trace(reference, dtype) -> Trace:
    return reference.trace(dtype)


def test_every_step_equals_the_reference(reference, trace, dtype):
    differences = {name: difference(trace[name], wanted) for name, wanted in reference.table("value").items()}
    too_far = {name: value for name, value in differences.items() if not value <= TOLERANCES[dtype]}
    assert not too_far, f"{dtype}: {too_far}"


def test_every_step_is_in_the_reference(reference, trace):
    assert set(trace.program.by_name) - NOT_STORED == set(reference.table("value"))


def test_every_step_has_the_shape_and_precision_of_the_reference(reference, trace, dtype):
    for name, wanted in reference.table("value").items():
        assert trace[name].shape == wanted.shape == trace.program.shape(name), name
        assert trace[name].dtype == dtype, name


def test_minus_infinity_is_where_the_reference_has_it(reference, trace):
    for name, wanted in reference.table("value").items():
        assert np.array_equal(np.isneginf(trace[name]), np.isneginf(wanted)), name


def test_the_same_keys_are_padding(reference, trace):
    assert np.array_equal(trace["input.visible"], reference.expected["padding"])


def test_ids_are_those_of_the_reference(reference, trace):
    assert np.array_equal(trace["tokens"], reference.expected["input_ids"])
    if "decoder_input_ids" in reference.expected:
        assert np.array_equal(trace["decoder.tokens"], reference.expected["decoder_input_ids"])


# Numbers that tutorials print

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
