"""Folders and files that hold a model in a form that is not read: each is named for what it is, with the way out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import read_json
from tui_transformer.model.checks import shown

WEIGHTS = "model.safetensors"
PICKLED = (".bin", ".pt", ".pth", ".ckpt")
ADAPTER = "adapter_config.json"
ADAPTERS = (ADAPTER, "adapter_model.safetensors", "adapter_model.bin")
LARGEST = 1 << 20

_SAVE = "save them with a transformers before 5: AutoModel.from_pretrained('.', {}=True).save_pretrained('new')"
_GRAPH = "which is not read: name the folder of the model that it was exported from"
_TENSORFLOW = f"weights of TensorFlow, which are not read: {_SAVE.format('from_tf')}"
FORMS: Mapping[str, str] = {
    "*.onnx": f"a model as an ONNX graph, {_GRAPH}",
    "onnx/*.onnx": f"a model as an ONNX graph, {_GRAPH}",
    "*.h5": _TENSORFLOW,
    "*.ckpt.index": _TENSORFLOW,
    "saved_model.pb": f"a TensorFlow graph, {_GRAPH}",
    "*.tflite": f"a TensorFlow Lite graph, {_GRAPH}",
    "openvino_model.xml": f"an OpenVINO graph, {_GRAPH}",
    "*.msgpack": f"weights of Flax, which are not read: {_SAVE.format('from_flax')}",
}
"""Names of files → what such a file is."""

OTHER_HEADS = ("Classification", "QuestionAnswering", "MultipleChoice", "NextSentencePrediction", "RewardModel")
"""Ends of the names of architectures whose output is no word."""


def refuse_folder(folder: Path) -> None:
    """Raise InputError, with the way out, for a folder whose weights are in a form that is not read.

    To be called where the folder lacks what a checkpoint has.
    """
    if any((folder / name).is_file() for name in ADAPTERS):
        raise InputError(_adapter(folder / ADAPTER))
    try:
        files = sorted(folder.iterdir(), key=lambda path: (not path.name.startswith("pytorch_model"), path.name))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}: choose another folder") from error
    for path in files:
        refuse_pickled(path)
    for pattern, what in FORMS.items():
        for path in sorted(folder.glob(pattern)):
            raise InputError(f"{path}: {what}")


def refuse_file(path: Path) -> None:
    """Raise InputError, with the way out, for a file of a model in a form that is not read."""
    if path.name in ADAPTERS:
        raise InputError(_adapter(path.with_name(ADAPTER)))
    refuse_pickled(path)
    for pattern, what in FORMS.items():
        if path.match(pattern):
            raise InputError(f"{path}: {what}")


def refuse_pickled(path: Path) -> None:
    """Raise InputError for a file of pickled weights, with the way out; of one of many, for all of them."""
    if path.suffix not in PICKLED:
        return
    one = f"torch.load({path.name!r}, map_location='cpu', weights_only=True)"
    items, first = f"for k, v in {one}.items()", ""
    if "-of-" in path.stem:
        one = one.replace(repr(path.name), "p")
        pattern = f"{path.stem.partition('-')[0]}-*-of-*{path.suffix}"
        items, first = f"for p in sorted(glob.glob({pattern!r})) for k, v in {one}.items()", "glob, "
    convert = f"save_file({{k: v.clone().contiguous() {items}}}, {WEIGHTS!r})"
    raise InputError(
        f"{path}: pickled weights can run code when they are read, so they are not; where you trust them, convert them "
        f"in Python in their folder: import {first}torch; from safetensors.torch import save_file; {convert}"
    )


def _adapter(path: Path) -> str:
    base = read_json(path, LARGEST).get("base_model_name_or_path") if path.is_file() else None
    of = f" for {shown(base)}" if isinstance(base, str) else ""
    merge = "AutoPeftModel.from_pretrained('.').merge_and_unload().save_pretrained('merged')"
    return (
        f"{path.parent}: an adapter (LoRA){of}, which is no model by itself: merge it in Python with the library peft, "
        f"{merge}, and name that folder"
    )


def check_architecture(raw: Mapping[str, Any]) -> None:
    """Raise UsageError where a configuration is that of a model whose output is no word."""
    named = raw.get("architectures")
    for name in named if isinstance(named, list) else ():
        if isinstance(name, str) and name.endswith(OTHER_HEADS):
            raise UsageError(
                f"{name[:80]} has a head that gives classes, which is not read: save the model below it in Python with "
                "transformers, AutoModel.from_pretrained('.').save_pretrained('new'), and name that folder"
            )
