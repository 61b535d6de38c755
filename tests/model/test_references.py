"""Every published family gives what an independent implementation computes, in float64 throughout, for its checkpoint.

A folder in `tests/references` is all that a family needs to be tested here.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from reference import REFERENCES, Reference

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
LESS_EXACT = {"marian": 1e-6}
"""Marian stores its sines in float32."""

INPUTS = frozenset({"text", "input_ids", "decoder_input_ids"})
ARRAY = re.compile(r"(decoder_|cross_)?(hidden|attention|router)_(\d+)")


@pytest.fixture(params=sorted(path.name for path in REFERENCES.iterdir() if not path.name.startswith("vanilla")))
def family(request):
    return request.param


@pytest.fixture
def checkpoint(family) -> Reference:
    with np.load(REFERENCES / family / "expected.npz") as file:
        return Reference(REFERENCES / family, dict(file))


def step_of(key: str, program, arrays) -> str:
    """The step that an expected array is of."""
    if key == "logits":
        return program.logits
    prefix, kind, number = ARRAY.fullmatch(key).groups()
    both = "decoder_input_ids" in arrays
    alone = "decoder" if "decoder.0.output" in program.aliases else "encoder"
    stack = ("decoder" if prefix else "encoder") if both else alone
    if kind == "router":
        return [step.name for step in program.steps if step.name.endswith("feed_forward.router")][int(number)]
    if kind == "attention":
        return f"{stack}.{number}.{'cross' if prefix == 'cross_' else 'self'}_attention.weights"
    if number == "0":
        return ("decoder." if both and stack == "decoder" else "") + "embedding.output"
    last = f"{prefix or ''}hidden_{int(number) + 1}" not in arrays
    return f"{stack}.norm" if last and f"{stack}.norm" in program.by_name else f"{stack}.{int(number) - 1}.output"


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_every_expected_array_is_computed(checkpoint, family, dtype):
    trace, arrays = checkpoint.trace(dtype), checkpoint.expected
    far = {}
    for key in arrays.keys() - INPUTS:
        got, wanted = trace[step_of(key, trace.program, arrays)], arrays[key]
        assert (got.dtype, got.shape) == (dtype, wanted.shape), key
        far[key] = float(np.abs(got - wanted).max() / max(1.0, np.abs(wanted).max()))
    assert max(far.values()) <= max(TOLERANCES[dtype], LESS_EXACT.get(family, 0.0)), far


def test_cells_of_every_step_are_explained(checkpoint):
    trace, generator = checkpoint.trace(), np.random.default_rng(0)
    for step in trace.program.steps:
        for _ in range(2):
            index = tuple(int(generator.integers(size)) for size in step.shape)
            assert abs(trace.explain_cell(step.name, index).difference) <= 1e-9, (step.name, index)


def test_the_configuration_survives_being_written(checkpoint):
    model = checkpoint.model()
    written = json.loads(json.dumps(model.config.to_json()))
    assert model.family.from_json(written).to_json() == model.config.to_json()
