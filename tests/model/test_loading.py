"""Checkpoints in folders: their tokenizers, the types that numbers are stored in, and pickles."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from saved import TENSOR, TEXT, logits, refusal, write_raw

from tui_transformer.model import Model

REFERENCES = Path(__file__).parents[1] / "references"
FAMILIES = ["bart", "bert", "distilbert", "gpt2", "gpt_neox", "llama", "marian", "qwen2", "qwen3", "roberta", "t5"]


# Tokenizers in the folder


@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_checkpoint_reads_text_by_its_own_tokenizer(family):
    with np.load(REFERENCES / family / "expected.npz") as expected:
        text, ids = expected["text"].tobytes().decode(), expected["input_ids"].tolist()
    model = Model.load(REFERENCES / family, device="cpu")
    assert list(model.encode(text).ids) == ids
    assert model.vocabulary.path.name == "tokenizer.json"
    assert model.word(ids[3]) == model.vocabulary.words[ids[3]]
    assert model.changed(dtype="float64").encode(text).ids == tuple(ids)


def test_the_tokenizer_of_a_folder_is_chosen_in_order(folder):
    tokenizer = json.loads((REFERENCES / "gpt2" / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"], tokenizer["model"]["merges"] = {"a": 0, "t": 1}, []
    tokenizer["added_tokens"] = []
    files = {
        "vocab.json": '{"a": 0, "t": 1}',
        "vocab.txt": "[UNK]\na\n##t\n",
        "vocabulary.txt": "a\n",
        "tokenizer.json": json.dumps(tokenizer),
    }
    (folder / "vocabulary.txt").unlink()
    assert Model.load(folder).vocabulary is None
    (folder / "merges.txt").write_text("#version: 0.2\n")
    for name, content in files.items():
        (folder / name).write_text(content)
        assert Model.load(folder).vocabulary.path.name == name
    assert Model.load(folder, vocabulary="waves").vocabulary.name == "waves"


def test_a_broken_tokenizer_is_told_in_one_line(folder):
    (folder / "tokenizer.json").write_text("{")
    assert "tokenizer.json is no tokenizer that can be read" in refusal(folder)


def test_a_tokenizer_is_saved_with_the_model(tmp_path):
    model = Model.load("encoder", vocabulary=REFERENCES / "t5" / "tokenizer.json", device="cpu")
    model.save(tmp_path / "new")
    again = Model.load(tmp_path / "new", device="cpu")
    assert again.encode(TEXT).ids == model.encode(TEXT).ids
    assert np.array_equal(again.trace(TEXT)["output.logits"], model.trace(TEXT)["output.logits"])


# Stored types


def test_bfloat16_is_the_upper_half_of_float32(folder):
    tensors = load_file(folder / "model.safetensors")
    halves = {name: array.view("<u4") >> 16 for name, array in tensors.items()}
    write_raw(folder / "model.safetensors", {name: ("BF16", half.astype("<u2")) for name, half in halves.items()})
    model = Model.load(folder, device="cpu")
    for name in tensors:
        wanted = (halves[name] << 16).view("<f4")
        assert np.array_equal(model.weights.get(name, wanted.shape), wanted)
        np.testing.assert_allclose(wanted, tensors[name], rtol=1 / 128)


def test_a_bfloat16_infinity_is_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    raw = {name: ("BF16", (array.view("<u4") >> 16).astype("<u2")) for name, array in tensors.items()}
    raw[TENSOR][1][2, 3] = 0x7F80
    write_raw(folder / "model.safetensors", raw)
    assert f"tensor {TENSOR} holds NaN or infinity" in refusal(folder)


def test_parts_of_one_tensor_are_taken_before_they_are_converted(tmp_path):
    """GPT-2 and GPT-NeoX store query, key and value in one tensor."""
    for family in ("gpt2", "gpt_neox"):
        shutil.copytree(REFERENCES / family, tmp_path / family)
        tensors = load_file(tmp_path / family / "model.safetensors")
        halves = {name: (array.view("<u4") >> 16).astype("<u2") for name, array in tensors.items()}
        write_raw(tmp_path / family / "model.safetensors", {name: ("BF16", half) for name, half in halves.items()})
        widened = {name: (half.astype("<u4") << 16).view("<f4") for name, half in halves.items()}
        shutil.copytree(REFERENCES / family, tmp_path / f"{family}-32")
        save_file(widened, tmp_path / f"{family}-32" / "model.safetensors")
        assert np.array_equal(logits(tmp_path / family), logits(tmp_path / f"{family}-32"))


@pytest.mark.parametrize(("kind", "dtype"), [("F8_E4M3", "u1"), ("I64", "<i8"), ("U8", "u1"), ("BOOL", "?")])
def test_other_types_are_refused_only_where_they_are_needed(folder, kind, dtype):
    tensors: dict[str, tuple[str, Any]] = {
        name: ("F32", array) for name, array in load_file(folder / "model.safetensors").items()
    }
    write_raw(folder / "model.safetensors", tensors | {"position_ids": (kind, np.zeros((1, 8), dtype))})
    assert logits(folder).shape == (8, 8)
    write_raw(folder / "model.safetensors", tensors | {TENSOR: (kind, np.zeros((8, 8), dtype))})
    message = f"tensor {TENSOR} is stored as {kind}: only F64, F32, F16, BF16 can be read"
    assert f"model.safetensors: {message}" in refusal(folder)


# Pickles


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "model.pth", "last.ckpt"])
def test_pickled_weights_are_refused_and_not_opened(folder, tmp_path, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    for where in (folder, folder / name):
        message = refusal(where)
        assert f"{name}: pickled weights can run code when they are read" in message
        assert f"torch.load('{name}', map_location='cpu', weights_only=True)" in message
        assert "save_file" in message
    assert not (tmp_path / "sprung").exists()


def test_pickled_weights_beside_safe_ones_do_not_matter(folder):
    (folder / "pytorch_model.bin").write_bytes(b"")
    assert logits(folder).shape == (8, 8)


def test_the_weights_among_pickled_files_are_named_first(folder):
    (folder / "model.safetensors").unlink()
    for name in ("optimizer.pt", "pytorch_model.bin"):
        (folder / name).touch()
    assert "pytorch_model.bin: pickled weights" in refusal(folder)
