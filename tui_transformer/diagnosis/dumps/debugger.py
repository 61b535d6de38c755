"""The file of transformers' `model_addition_debugger`: a tree of modules with what went in and came out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, held
from tui_transformer.diagnosis.dumps.numbers import ELIDED, NUMBER
from tui_transformer.diagnosis.dumps.precision import printed_precision
from tui_transformer.diagnosis.dumps.safetensors import read_safetensors
from tui_transformer.errors import InputError
from tui_transformer.files import is_file, read_json
from tui_transformer.text.files import shown_path

LARGEST = 1 << 26
LONGEST_SHAPE = 200
"""Letters of a shape that are looked at."""

TREE = "module_path"
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "decoder_input_ids", "labels", "position_ids")


def read_debugger(path: Path) -> Dump:
    """The outputs of the modules whose values are there whole, under the paths of the modules.

    Raises:
        InputError: It is not such a file, or holds no whole values.
    """
    tree = _tree(path)
    tensors: dict[str, Tensor] = {}
    cut: dict[str, str] = {}
    for name, node in _nodes(tree):
        tensor = _tensor(path, name, node)
        if tensor is None:
            cut[name] = ELIDED
        else:
            tensors.setdefault(name, tensor)
    if not tensors:
        raise InputError(
            f"{shown_path(path)}: shows only the corners of its arrays: write them whole, with "
            "model_addition_debugger_context(model, debug_path=…, do_prune_layers=False, use_repr=False)"
        )
    return Dump(path, tensors, refused=cut)


def _tree(path: Path) -> dict[str, Any]:
    raw = read_json(path, LARGEST)
    if TREE not in raw:
        raise InputError(f"{shown_path(path)}: not a dump that is known: its JSON has no {TREE}")
    return raw


def _nodes(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every array with its name: what the whole model was given, and what left each module."""
    inputs, outputs = tree.get("inputs"), tree.get("outputs")
    given = inputs.get("kwargs") if isinstance(inputs, dict) else None
    for name in INPUTS:
        if isinstance(given, dict) and _is_array(given.get(name)):
            yield name, given[name]
    for key, value in outputs.items() if isinstance(outputs, dict) and not _is_array(outputs) else ():
        yield from _arrays(str(key), value)
    waiting = _children(tree)[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield from _arrays(str(node.get(TREE, "")), node.get("outputs"))
            waiting += _children(node)[::-1]


def _children(node: Mapping[str, Any]) -> list[Any]:
    children = node.get("children")
    return children if isinstance(children, list) else []


def _arrays(name: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """An array, or those of a tuple: the first under the name itself."""
    if _is_array(value):
        yield name, value
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _arrays(name if i == 0 and len(value) == 1 else f"{name}.{i}", part)


def _is_array(value: Any) -> bool:
    return isinstance(value, dict) and "shape" in value and "value" in value


def _tensor(path: Path, name: str, node: Mapping[str, Any]) -> Tensor | None:
    """An array; None where it is not whole."""
    value, shape = node["value"], tuple(int(size) for size in re.findall(r"\d+", str(node["shape"])[:LONGEST_SHAPE]))
    if isinstance(value, str):
        file = _sibling(path, value)
        data = None if file is None else read_safetensors(file).tensors.get("data")
        return None if data is None else Tensor(name, data.shape, data.read)
    text = " ".join(map(str, value)) if isinstance(value, list) else ""
    text = re.sub(r"tensor\(|,\s*(?:dtype|device|grad_fn)=.*", " ", text)
    words = NUMBER.findall(re.sub(r"[\[\](),]", " ", text))
    if "..." in text or len(words) != math.prod(shape):
        return None
    return held(name, np.array([float(word) for word in words]).reshape(shape), printed_precision(words))


def _sibling(path: Path, name: str) -> Path | None:
    """A file in the folder of the dump or below, where there is one of this name."""
    try:
        file = (path.parent / name).resolve()
        inside = path.parent.resolve() in file.parents
    except (OSError, ValueError):
        return None
    return file if inside and is_file(file) else None
