"""Every published family gives what an independent implementation computes, in float64 throughout, for its checkpoint.

A folder in `tests/references` is all that a family needs to be tested here.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace

import numpy as np
import pytest
from reference import REFERENCES, Reference, reference_of
from safetensors.numpy import load_file

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
LESS_EXACT = {"marian": 1e-6, "bloom": 1e-8}
"""Marian stores its sines in float32, and the numbers of BLOOM are large."""

INPUTS = frozenset({"text", "input_ids", "decoder_input_ids"})
ARRAY = re.compile(r"(decoder_|cross_)?(hidden|attention|router)_(\d+)")


@pytest.fixture(params=sorted(path.name for path in REFERENCES.iterdir() if not path.name.startswith("vanilla")))
def family(request):
    return request.param


@pytest.fixture
def checkpoint(family) -> Reference:
    return reference_of(family)


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
        far[key] = float(np.abs(got - wanted).max())
    assert max(far.values()) <= max(TOLERANCES[dtype], LESS_EXACT.get(family, 0.0)), far


def test_cells_of_every_step_are_explained(checkpoint):
    trace, generator = checkpoint.trace(), np.random.default_rng(0)
    for step in trace.program.steps:
        for _ in range(2):
            index = tuple(int(generator.integers(size)) for size in step.shape)
            assert abs(trace.explain_cell(step.name, index).difference) <= 1e-9, (step.name, index)


def test_the_configuration_survives_being_written(checkpoint):
    config = checkpoint.model().config
    again = type(config).from_json(json.loads(json.dumps(config.to_json())))
    assert again.to_json() == config.to_json()
    told = {field.name: getattr(config, field.name) for field in fields(config) if field.name in config.of_the_file}
    assert replace(again, **told) == config


# The steps of decoders

ATTENTION = ("scores", "scaled", "masked", "weights", "context", "concat", "output")
PROJECTIONS = ("norm", "query", "key", "value")
TURNED = ("query_rotated", "key_rotated")
NORMALISED = ("query_norm", "key_norm")
GATED = ("norm", "hidden", "gate", "activation", "gated", "output", "residual")
PLAIN = ("norm", "hidden", "activation", "output", "residual")
LAYERS = {
    "gpt2": ((*PROJECTIONS, *ATTENTION, "residual"), PLAIN),
    "gpt_neox": ((*PROJECTIONS, *TURNED, *ATTENTION), PLAIN),
    "llama": ((*PROJECTIONS, *TURNED, *ATTENTION, "residual"), GATED),
    "qwen3": ((*PROJECTIONS, *NORMALISED, *TURNED, *ATTENTION, "residual"), GATED),
}
LAYERS["gemma2"] = ((*LAYERS["llama"][0], "capped", "output_norm"), (*GATED, "output_norm"))
LAYERS |= dict.fromkeys(("mistral-window", "qwen2", "qwen2-window"), LAYERS["llama"])
EMBEDDING = {"gpt2": ["embedding.tokens", "embedding.positions", "embedding.output"]}


@pytest.mark.parametrize("family", LAYERS)
def test_steps_have_their_names(family):
    program = reference_of(family).model().program(3)
    attention, feed_forward = LAYERS[family]
    wanted = ["tokens", *EMBEDDING.get(family, ["embedding.tokens"])]
    for i in range(2):
        wanted += [f"decoder.{i}.self_attention.{name}" for name in attention]
        wanted += [f"decoder.{i}.feed_forward.{name}" for name in feed_forward]
    wanted += ["output.capped"] if family == "gemma2" else []
    assert sorted(program.by_name) == sorted([*wanted, "decoder.norm", "output.logits", "output.probabilities"])
    assert program.aliases["decoder.1.output"] == "decoder.1.feed_forward.residual"
    assert program.step("embedding.output").shape == program.step("decoder.norm").shape


@pytest.mark.parametrize("family", LAYERS)
def test_every_tensor_of_the_file_is_used(family):
    checkpoint = reference_of(family)
    stored = sum(array.size for array in load_file(checkpoint.folder / "model.safetensors").values())
    assert checkpoint.model().program(1).weight_count() == stored


@pytest.mark.parametrize("family", LAYERS)
def test_a_padded_batch_gives_the_rows_of_its_sentences(family, changed):
    checkpoint = reference_of(family)
    ids = checkpoint.expected["input_ids"].tolist()
    pad = next(i for i in range(1, 100) if i not in ids)
    padded = changed(family, pad_token_id=pad).trace(ids=[ids, [*ids[:5], *[pad] * (len(ids) - 5)]])
    np.testing.assert_allclose(padded["output.logits"][0], checkpoint.trace()["output.logits"], atol=1e-12)
    short = checkpoint.model().trace(ids=ids[:5])
    np.testing.assert_allclose(padded["output.logits"][1, :5], short["output.logits"], atol=1e-12)
