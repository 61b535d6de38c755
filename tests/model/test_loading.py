"""Checkpoints in folders: tokenizers, the types of numbers, several files, and forms that are not read."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import REFERENCES, reconfigured
from safetensors.numpy import load_file, save_file
from saved import INDEX, SHARDS, TENSOR, TEXT, logits, refusal, write_raw

from tui_transformer.model import Model

OUTSIDE = ["../model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", "", "C:model", "..\\model"]
NO_NAMES = ["a\0b", "\x1b[31m\n", "\ud800"]


# Tokenizers in the folder


@pytest.mark.parametrize("family", ["gpt2", "t5"])
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


def test_a_tokenizer_is_saved_with_the_model_and_a_broken_one_told_in_one_line(tmp_path, folder):
    model = Model.load("encoder", vocabulary=REFERENCES / "t5" / "tokenizer.json", device="cpu")
    model.save(tmp_path / "new")
    again = Model.load(tmp_path / "new", device="cpu")
    assert again.encode(TEXT).ids == model.encode(TEXT).ids
    assert np.array_equal(again.trace(TEXT)["output.logits"], model.trace(TEXT)["output.logits"])
    (folder / "tokenizer.json").write_text("{")
    assert "tokenizer.json is no tokenizer that can be read" in refusal(folder)


# Stored types


def test_bfloat16_is_the_upper_half_of_float32_and_its_infinity_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    halves = {name: array.view("<u4") >> 16 for name, array in tensors.items()}
    write_raw(folder / "model.safetensors", {name: ("BF16", half.astype("<u2")) for name, half in halves.items()})
    model = Model.load(folder, device="cpu")
    for name in tensors:
        wanted = (halves[name] << 16).view("<f4")
        assert np.array_equal(model.weights.get(name, wanted.shape), wanted)
        np.testing.assert_allclose(wanted, tensors[name], rtol=1 / 128)
    # infinity
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


def test_pickled_weights_beside_safe_ones_do_not_matter_and_among_pickled_files_are_named_first(folder):
    for name in ("optimizer.pt", "pytorch_model.bin"):
        (folder / name).touch()
    assert logits(folder).shape == (8, 8)
    (folder / "model.safetensors").unlink()
    assert "pytorch_model.bin: pickled weights" in refusal(folder)


# Weights in several files, by their index


def test_several_files_are_read_as_one_may_be_links_and_come_behind_a_single_one(sharded, tmp_path):
    assert np.array_equal(logits(sharded), logits("encoder"))
    (tmp_path / "blobs").mkdir()
    for shard in SHARDS:
        shutil.move(sharded / shard, tmp_path / "blobs" / shard[:11])
        (sharded / shard).symlink_to(tmp_path / "blobs" / shard[:11])
    assert np.array_equal(logits(sharded), logits("encoder"))
    # a single file
    Model.load("encoder", device="cpu").save(sharded)
    (sharded / INDEX).write_text("{")
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_a_missing_and_a_cut_shard_are_named(sharded):
    (sharded / SHARDS[0]).write_bytes((sharded / SHARDS[0]).read_bytes()[:-1])
    assert f"{SHARDS[0]}: not a whole safetensors file (" in refusal(sharded)
    (sharded / SHARDS[0]).unlink()
    assert f"{SHARDS[0]}: no such file" in refusal(sharded)


def changed_shard(folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    """Change the shard that has the tensor; its name."""
    shard = json.loads((folder / INDEX).read_text())["weight_map"][TENSOR]
    tensors = load_file(folder / shard)
    change(tensors)
    save_file(tensors, folder / shard)
    return str(shard)


def test_a_missing_tensor_is_named_with_the_file_that_should_have_it(sharded):
    shard = changed_shard(sharded, lambda tensors: tensors.pop(TENSOR))
    assert f"{shard}: tensor {TENSOR} is missing, and {INDEX} says that it is there" in refusal(sharded)
    index = json.loads((sharded / INDEX).read_text())
    del index["weight_map"][TENSOR]
    (sharded / INDEX).write_text(json.dumps(index))
    assert f"{INDEX}: tensor {TENSOR} is missing: the file does not fit its config.json" in refusal(sharded)


def test_what_is_wrong_in_a_shard_names_the_shard(sharded):
    shard = changed_shard(sharded, lambda tensors: tensors[TENSOR].__setitem__((0, 0), np.nan))
    assert f"{shard}: tensor {TENSOR} holds NaN or infinity" in refusal(sharded)
    shard = changed_shard(sharded, lambda tensors: tensors.update({TENSOR: np.ones((4, 4), "f4")}))
    assert f"{shard}: tensor {TENSOR} is 4 × 4, but config.json says 8 × 8" in refusal(sharded)


@pytest.mark.parametrize("where", [0, -1])
def test_a_tensor_in_two_shards_is_read_where_the_index_says(sharded, where):
    weight_map = json.loads((sharded / INDEX).read_text())["weight_map"]
    name = next(name for name, shard in weight_map.items() if shard == SHARDS[where])
    other = SHARDS[-1 - where]
    zeros = np.zeros_like(load_file(sharded / SHARDS[where])[name])
    save_file(load_file(sharded / other) | {name: zeros}, sharded / other)
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_an_index_that_is_none_is_refused_and_a_shard_outside_the_folder_not_opened(sharded):
    for place in (*OUTSIDE, *NO_NAMES):
        (sharded / INDEX).write_text(json.dumps({"weight_map": {TENSOR: place}}))
        assert f"{INDEX}: tensor {TENSOR} is in {place!r}, which is not a file beside it: not opened" in refusal(
            sharded
        )
    for content, says in (
        *(
            (each, "no weight_map")
            for each in ("{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 1}}')
        ),
        *((each, "not JSON") for each in ("", "{", "[" * 200_000)),
    ):
        (sharded / INDEX).write_text(content)
        assert f"{INDEX}: {says}" in refusal(sharded)


# Models in a form that is not read, each named for what it is


FILES = {
    "model.onnx": "a model as an ONNX graph, which is not read: name the folder",
    "onnx/model.onnx": "a model as an ONNX graph, which is not read: name the folder",
    "tf_model.h5": "weights of TensorFlow, which are not read: save them",
    "bert_model.ckpt.index": "weights of TensorFlow, which are not read: save them",
    "saved_model.pb": "a TensorFlow graph, which is not read: name the folder",
    "model.tflite": "a TensorFlow Lite graph, which is not read: name the folder",
    "openvino_model.xml": "an OpenVINO graph, which is not read: name the folder",
    "flax_model.msgpack": "weights of Flax, which are not read: save them",
    "pytorch_model.bin": "pickled weights can run code when they are read, so they are not",
}


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_a_form_that_is_not_read_is_named(folder, name, configured):
    (folder / "model.safetensors").unlink()
    if not configured:
        (folder / "config.json").unlink()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).touch()
    for where in (folder, folder / name):
        assert f"{folder / name}: {FILES[name]}" in refusal(where)


def test_a_form_that_is_not_read_does_not_matter_beside_weights_nor_names_that_would_be_one(folder):
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    assert Model.load(folder, device="cpu").trace(ids=[1])["output.logits"].shape == (1, 8)
    tensors = load_file(folder / "model.safetensors")
    twice = {f"_orig_mod.{name}": np.zeros_like(array) for name, array in tensors.items()}
    save_file(tensors | twice, folder / "model.safetensors")
    assert np.array_equal(logits(folder), logits("encoder"))


def test_an_adapter_of_pickled_weights_is_named_as_that_and_a_folder_of_nothing_says_what_is_missing(tmp_path):
    assert "config.json: no such file" in refusal(tmp_path)
    (tmp_path / "adapter_model.bin").touch()
    for where in (tmp_path, tmp_path / "adapter_model.bin"):
        assert f"{tmp_path}: an adapter (LoRA), which is no model by itself" in refusal(where)


def test_an_adapter_is_named(tmp_path, folder):
    for content, base in (('{"base_model_name_or_path": "org/base"}', " for 'org/base'"), ("{}", "")):
        (tmp_path / "adapter_config.json").write_text(content)
        save_file({"lora": np.zeros(3, "f4")}, tmp_path / "adapter_model.safetensors")
        for where in (tmp_path, tmp_path / "adapter_model.safetensors"):
            assert f"{tmp_path}: an adapter (LoRA){base}, which is no model by itself: merge it" in refusal(where)
    # a classifier
    for end in ("ForMultipleChoice", "ForNextSentencePrediction"):
        reconfigured(folder, architectures=[f"Bert{end}"])
        said = f"config.json: Bert{end} has a head that gives classes, which is not read: save the model below it"
        assert said in refusal(folder)


def test_all_parts_of_pickled_weights_are_converted(folder):
    (folder / "model.safetensors").unlink()
    for number in (1, 2):
        (folder / f"pytorch_model-0000{number}-of-00002.bin").touch()
    message = refusal(folder, most=800)
    assert "for p in sorted(glob.glob('pytorch_model-*-of-*.bin')) for k, v in torch.load(p, map_location" in message
    assert "import glob, torch; from safetensors.torch import save_file; save_file({" in message


@pytest.mark.parametrize("parts", [1, 3])
def test_the_advice_for_pickled_weights_works(folder, parts, monkeypatch):
    torch = pytest.importorskip("torch")
    path, wanted = folder / "model.safetensors", logits(folder)
    tensors = {name: torch.from_numpy(array) for name, array in load_file(path).items()}
    path.unlink()
    for i in range(parts):
        name = "pytorch_model.bin" if parts == 1 else f"pytorch_model-0000{i + 1}-of-0000{parts}.bin"
        torch.save({key: tensors[key] for key in sorted(tensors)[i::parts]}, folder / name)
    _, _, code = refusal(folder, most=800).partition("in Python in their folder: ")
    monkeypatch.chdir(folder)
    exec(code, {})  # noqa: S102 - what the message tells a user to run
    assert np.array_equal(logits(folder), wanted)


# Wrappers

WRAPPED = {
    "module": lambda name: f"module.{name}",
    "compiled": lambda name: f"_orig_mod.{name}",
    "both": lambda name: f"module._orig_mod.{name}",
    "both, the other way": lambda name: f"_orig_mod.module.{name}",
    "a part was wrapped": lambda name: name.replace("encoder.0.", "encoder.module.0."),
    "a part was compiled": lambda name: name.replace("encoder.0.", "encoder.0._orig_mod."),
}


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_names_that_a_wrapper_made_longer_are_understood(folder, wrapped):
    tensors = load_file(folder / "model.safetensors")
    save_file({WRAPPED[wrapped](name): array for name, array in tensors.items()}, folder / "model.safetensors")
    assert np.array_equal(logits(folder), logits("encoder"))
