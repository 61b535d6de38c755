"""Published decoder-only checkpoints give what an independent implementation computes for them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference import REFERENCES, Reference

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
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
    "qwen2": ((*PROJECTIONS, *TURNED, *ATTENTION, "residual"), GATED),
    "qwen3": ((*PROJECTIONS, *NORMALISED, *TURNED, *ATTENTION, "residual"), GATED),
}
BOTH = ("output_norm",)
LAYERS["gemma2"] = ((*LAYERS["llama"][0], "capped", *BOTH), (*GATED, *BOTH))
LAYERS |= {"mistral-window": LAYERS["llama"], "qwen2-window": LAYERS["qwen2"]}
EMBEDDING = {"gpt2": ["embedding.tokens", "embedding.positions", "embedding.output"]}


@pytest.fixture(params=sorted(LAYERS))
def family(request):
    return request.param


@pytest.fixture
def checkpoint(family) -> Reference:
    folder = REFERENCES / family
    with np.load(folder / "expected.npz") as file:
        return Reference(folder, dict(file))


def step_of(key: str, layers: int) -> str:
    """The step that an expected array is of."""
    kind, _, number = key.rpartition("_")
    if kind == "attention":
        return f"decoder.{number}.self_attention.weights"
    if kind == "hidden":
        last = {0: "embedding.output", layers: "decoder.norm"}
        return last.get(int(number), f"decoder.{int(number) - 1}.output")
    return key


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_every_expected_array_is_computed(checkpoint, family, dtype):
    trace = checkpoint.trace(dtype)
    arrays = {key: value for key, value in checkpoint.expected.items() if key not in ("text", "input_ids")}
    layers = sum(key.startswith("attention") for key in arrays)
    assert len(arrays) == 2 * layers + 2
    for key, wanted in arrays.items():
        got = trace[trace.program.logits if key == "logits" else step_of(key, layers)]
        assert got.dtype == dtype
        assert got.shape == wanted.shape
        assert np.abs(got - wanted).max() <= TOLERANCES[dtype], key


def test_steps_have_their_names(checkpoint, family):
    program = checkpoint.model().program(3)
    attention, feed_forward = LAYERS[family]
    wanted = ["tokens", *EMBEDDING.get(family, ["embedding.tokens"])]
    for i in range(2):
        wanted += [f"decoder.{i}.self_attention.{name}" for name in attention]
        wanted += [f"decoder.{i}.feed_forward.{name}" for name in feed_forward]
    wanted += ["output.capped"] if family == "gemma2" else []
    assert sorted(program.by_name) == sorted([*wanted, "decoder.norm", "output.logits", "output.probabilities"])
    assert program.aliases["decoder.1.output"] == "decoder.1.feed_forward.residual"
    assert program.step("embedding.output").shape == program.step("decoder.norm").shape


def test_every_tensor_of_the_file_is_used(checkpoint):
    from safetensors import safe_open

    model = checkpoint.model()
    with safe_open(checkpoint.folder / "model.safetensors", framework="np") as file:
        stored = sum(np.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    assert model.program(1).weight_count() == stored


def test_cells_of_every_step_are_explained(checkpoint):
    trace = checkpoint.trace()
    generator = np.random.default_rng(0)
    for step in trace.program.steps:
        for _ in range(3):
            index = tuple(int(generator.integers(size)) for size in step.shape)
            explained = trace.explain_cell(step.name, index)
            assert explained.stored == trace[step.name][index]
            assert abs(explained.difference) <= 1e-9, (step.name, index)


def test_a_padded_batch_gives_the_rows_of_its_sentences(checkpoint, tmp_path):
    ids = checkpoint.expected["input_ids"].tolist()
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes((checkpoint.folder / name).read_bytes())
    pad = next(i for i in range(1, 100) if i not in ids)
    raw = json.loads((checkpoint.folder / "config.json").read_text()) | {"pad_token_id": pad}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    padded = Reference(tmp_path, {}).model().trace(ids=[ids, [*ids[:5], *[pad] * (len(ids) - 5)]])
    np.testing.assert_allclose(padded["output.logits"][0], checkpoint.trace()["output.logits"], atol=1e-12)
    short = checkpoint.model().trace(ids=ids[:5])
    np.testing.assert_allclose(padded["output.logits"][1, :5], short["output.logits"], atol=1e-12)


def test_the_configuration_survives_being_written(checkpoint):
    config = checkpoint.model().config
    written = json.loads(json.dumps(config.to_json()))
    assert checkpoint.model().family.from_json(written) == config
