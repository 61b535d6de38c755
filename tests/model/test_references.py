"""Every family gives what an independent implementation computes, in float64 throughout, for its checkpoint."""

from __future__ import annotations

import re

import numpy as np
import pytest
from reference import REFERENCES, Reference, check_same, in_float64, reference_of

from tui_transformer.model import Model

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
LESS_EXACT = {"marian": 1e-6, "bloom": 1e-8}
"""Marian stores its sines in float32, and the numbers of BLOOM are large."""

INPUTS = frozenset({"text", "input_ids", "decoder_input_ids"})
ARRAY = re.compile(r"(decoder_|cross_)?(hidden|attention|router)_(\d+)")


OTHERS = REFERENCES.parent / "classifiers", REFERENCES.parent / "sentences"
NOT_STORED = {"tokens", "decoder.tokens"}


@pytest.fixture(params=sorted(path.name for path in REFERENCES.iterdir() if not path.name.startswith("vanilla")))
def family(request):
    return request.param


@pytest.fixture(params=sorted(path for above in (REFERENCES, *OTHERS) for path in above.iterdir()), ids=str)
def opened(request) -> Model:
    """Each of the references, of the classifiers and of the models of sentences."""
    return in_float64(request.param)


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


def test_cells_of_every_step_are_explained(opened):
    pad, generator = opened.config.pad_id, np.random.default_rng(0)
    trace = opened.trace(ids=[5, 9, 7, 2, *([] if pad is None else [pad])])
    for step in trace.program.steps:
        for _ in range(2):
            index = tuple(int(generator.integers(size)) for size in step.shape)
            assert abs(trace.explain_cell(step.name, index).difference) <= 1e-9, (step.name, index)


def test_what_is_saved_is_opened_again(opened, tmp_path):
    opened.save(tmp_path)
    again = in_float64(tmp_path)
    written = opened.config.to_json()
    assert opened.family.from_json(written).to_json() == written
    assert again.program(4).weights == opened.program(4).weights
    check_same(again, opened, [5, 9, 7, 2], opened.program(4).steps[-1].name)


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
def test_steps_have_their_names_and_use_every_tensor_of_the_file(family):
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
    assert program.weight_count() == sum(array.size for array in reference_of(family).tensors().values())


# The models that come with the program
def difference(got: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference of finite cells, relative to the largest finite value."""
    finite = np.isfinite(wanted)
    return float(np.abs(got[finite] - wanted[finite]).max() / np.abs(wanted[finite]).max())


@pytest.fixture(params=sorted(TOLERANCES))
def dtype(request):
    return request.param


def test_every_step_equals_the_reference_and_so_do_the_tokens_and_which_are_padding(reference, dtype):
    trace, steps = reference.trace(dtype), reference.table("value")
    assert set(trace.program.by_name) - NOT_STORED == set(steps)
    for name, wanted in steps.items():
        assert (trace[name].shape, trace[name].dtype) == (wanted.shape, dtype), name
        assert trace.program.shape(name) == wanted.shape, name
        assert np.array_equal(np.isneginf(trace[name]), np.isneginf(wanted)), name
    differences = {name: difference(trace[name], wanted) for name, wanted in steps.items()}
    too_far = {name: value for name, value in differences.items() if not value <= TOLERANCES[dtype]}
    assert not too_far, f"{dtype}: {too_far}"
    arrays = reference.expected
    assert np.array_equal(trace["input.visible"], arrays["padding"])
    assert np.array_equal(trace["tokens"], arrays["input_ids"])
    if "decoder_input_ids" in arrays:
        assert np.array_equal(trace["decoder.tokens"], arrays["decoder_input_ids"])


# Numbers that tutorials print

OF_THE_EXAMPLE = "encoder.0.self_attention"
PRINTED = {
    "scores": ([[0.9803, 0.5904, 0.6611], [0.6106, 1.2708, 1.0522], [2.7333, 3.6344, 15.0921]], 1e-4),
    "weights": ([[1, 0, 0], [0.4182, 0.5818, 0], [0.0021, 0.0032, 0.9947]], 1e-4),
    "context": ([[1.2, 0.7, 0.5, 0.05], [0.7928, 0.5255, 0.5582, 0.0558], [2.1924, 1.2959, 0.003, 3.0938]], 1e-4),
}


def test_the_attention_example_gives_the_printed_values_and_its_mask_hides_later_keys(dtype):
    trace = Model.load("attention", device="cpu", dtype=dtype).trace()
    for step, (printed, tolerance) in PRINTED.items():
        assert np.abs(trace[f"{OF_THE_EXAMPLE}.{step}"][0] - printed).max() <= 0.5 * tolerance + 1e-6, step
    masked = trace[f"{OF_THE_EXAMPLE}.masked"][0]
    assert np.array_equal(np.isneginf(masked), np.triu(np.ones((3, 3), dtype=bool), 1))
