"""Models in a form that is not read, each named for what it is; names of tensors with a wrapper's prefix."""

from __future__ import annotations

import numpy as np
import pytest
from reference import reconfigured
from safetensors.numpy import load_file, save_file
from saved import refusal

from tui_transformer.model import Model

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


def test_such_a_file_beside_weights_does_not_matter(folder):
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    assert Model.load(folder, device="cpu").trace(ids=[1])["output.logits"].shape == (1, 8)


def test_a_folder_of_nothing_says_what_is_missing(tmp_path):
    assert "config.json: no such file" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("content", "base"), [('{"base_model_name_or_path": "org/base"}', " for 'org/base'"), ("{}", "")]
)
def test_an_adapter_is_named(tmp_path, content, base):
    (tmp_path / "adapter_config.json").write_text(content)
    save_file({"lora": np.zeros(3, "f4")}, tmp_path / "adapter_model.safetensors")
    for where in (tmp_path, tmp_path / "adapter_model.safetensors"):
        assert f"{tmp_path}: an adapter (LoRA){base}, which is no model by itself: merge it" in refusal(where)


def test_pickled_weights_of_an_adapter_are_named_as_that(tmp_path):
    (tmp_path / "adapter_model.bin").touch()
    for where in (tmp_path, tmp_path / "adapter_model.bin"):
        assert f"{tmp_path}: an adapter (LoRA), which is no model by itself" in refusal(where)


@pytest.mark.parametrize("end", ["ForMultipleChoice", "ForNextSentencePrediction"])
def test_a_classifier_is_named(folder, end):
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
    path, wanted = folder / "model.safetensors", Model.load(folder, device="cpu").trace(ids=[1, 2])["output.logits"]
    tensors = {name: torch.from_numpy(array) for name, array in load_file(path).items()}
    path.unlink()
    for i in range(parts):
        name = "pytorch_model.bin" if parts == 1 else f"pytorch_model-0000{i + 1}-of-0000{parts}.bin"
        torch.save({key: tensors[key] for key in sorted(tensors)[i::parts]}, folder / name)
    _, _, code = refusal(folder, most=800).partition("in Python in their folder: ")
    monkeypatch.chdir(folder)
    exec(code, {})  # noqa: S102 - what the message tells a user to run
    assert np.array_equal(Model.load(folder, device="cpu").trace(ids=[1, 2])["output.logits"], wanted)


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
    wanted = Model.load(folder, device="cpu").trace(ids=[1, 2])["output.logits"]
    tensors = load_file(folder / "model.safetensors")
    save_file({WRAPPED[wrapped](name): array for name, array in tensors.items()}, folder / "model.safetensors")
    assert np.array_equal(Model.load(folder, device="cpu").trace(ids=[1, 2])["output.logits"], wanted)


def test_names_are_as_they_are_where_two_would_be_one(folder):
    tensors = load_file(folder / "model.safetensors")
    twice = {f"_orig_mod.{name}": np.zeros_like(array) for name, array in tensors.items()}
    wanted = Model.load(folder, device="cpu").trace(ids=[1, 2])["output.logits"]
    save_file(tensors | twice, folder / "model.safetensors")
    assert np.array_equal(Model.load(folder, device="cpu").trace(ids=[1, 2])["output.logits"], wanted)
