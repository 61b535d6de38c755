"""The models compute what an independent implementation computes for the same checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.trace import Trace

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
