"""Files that tools write: the debugger of transformers, and the evaluation callback of llama.cpp."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.diagnosis.dumps.dump import (
    WHOLE,
    Dump,
    Tensor,
    Values,
    held,
    precision_of,
    printed_precision,
)
from tui_transformer.diagnosis.dumps.formats import read_safetensors
from tui_transformer.diagnosis.dumps.log import MOST
from tui_transformer.diagnosis.dumps.numbers import ELIDED, NUMBER, Matrix
from tui_transformer.errors import InputError
from tui_transformer.files import is_file, read_json
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

LARGEST = 1 << 26
LONGEST_SHAPE = 200
"""Letters of a shape that are looked at."""

TREE = "module_path"
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "decoder_input_ids", "labels", "position_ids")


def read_debugger(path: Path) -> Dump:
    """The outputs of the modules whose values are there whole, under the paths of the modules."""
    tree = read_json(path, LARGEST)
    if TREE not in tree:
        raise InputError(f"{shown_path(path)}: not a dump that is known: its JSON has no {TREE}")
    tensors: dict[str, Tensor] = {}
    cut: dict[str, str] = {}
    for name, node in _nodes(tree):
        tensor = _whole_tensor(path, name, node)
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


def _nodes(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every array with its name: what the whole model was given, and what left each module."""
    inputs, outputs = tree.get("inputs"), tree.get("outputs")
    given = inputs.get("kwargs") if isinstance(inputs, dict) else None
    for name in INPUTS:
        if isinstance(given, dict) and _is_array(given.get(name)):
            yield name, given[name]
    for key, value in outputs.items() if isinstance(outputs, dict) and not _is_array(outputs) else ():
        yield from _arrays(str(key), value)
    waiting: list[Any] = [{**tree, "outputs": None}]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield from _arrays(str(node.get(TREE, "")), node.get("outputs"))
            children = node.get("children")
            waiting += children[::-1] if isinstance(children, list) else []


def _arrays(name: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """An array, or those of a tuple: the first under the name itself."""
    if _is_array(value):
        yield name, value
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _arrays(name if i == 0 and len(value) == 1 else f"{name}.{i}", part)


def _is_array(value: Any) -> bool:
    return isinstance(value, dict) and "shape" in value and "value" in value


def _whole_tensor(path: Path, name: str, node: Mapping[str, Any]) -> Tensor | None:
    """An array, which may lie in a file of the dump's folder; None where it is not whole."""
    value, shape = node["value"], tuple(int(size) for size in re.findall(r"\d+", str(node["shape"])[:LONGEST_SHAPE]))
    if isinstance(value, str):
        try:
            file = (path.parent / value).resolve()
            inside = path.parent.resolve() in file.parents
        except (OSError, ValueError):
            return None
        data = read_safetensors(file).tensors.get("data") if inside and is_file(file) else None
        return None if data is None else Tensor(name, data.shape, data.read)
    text = " ".join(map(str, value)) if isinstance(value, list) else ""
    text = re.sub(r"tensor\(|,\s*(?:dtype|device|grad_fn)=.*", " ", text)
    words = NUMBER.findall(re.sub(r"[\[\](),]", " ", text))
    if "..." in text or len(words) != math.prod(shape):
        return None
    return held(name, np.array([float(word) for word in words]).reshape(shape), printed_precision(words))


HEADER = re.compile(
    r"(?P<name>[^\s:=](?:[^=\n]*?\S)?)\s+=\s+\((?P<type>\w+)\)\s+(?P<op>[A-Z_0-9]+)\b.*=\s+"
    r"\{\s*(?P<ne>\d+(?:,\s*\d+){0,3})\s*\}\s*$"
)
"""`ggml_debug:   Qcur-0 = (f32)  MUL_MAT(…) = {64, 5, 1, 1}`: sizes, the axis that runs fastest first."""

MOVED = re.compile(r"\((?:view|reshaped|permuted|cont|copy of.*|transposed)\)")
TURNED = {"ROPE": "rope"}
LONGEST = 1 << 10
"""Characters of a header; a row of numbers may have many more, and is not searched for one."""

MOST_CELLS = 1 << 26
"""Numbers of a tensor that shows its corners."""

PUNCTUATION = str.maketrans("[],", "   ")
SHOWN = 3
"""So many cells of either end of an axis are printed where there are more than twice as many."""


def is_callback_log(begin: Iterable[str]) -> bool:
    """True if the first lines of a text are those of such a log."""
    return any(map(_header, begin))


def _header(line: str) -> re.Match[str] | None:
    return HEADER.search(line) if len(line) <= LONGEST and " = (" in line and line.rstrip().endswith("}") else None


def callback_log(path: Path, lines: Iterable[str]) -> Dump:
    """The tensors of a log; of those that were made in several steps, the last."""
    tensors: dict[str, Tensor] = {}
    refused: dict[str, str] = {}
    for header, body in _parts(lines):
        if len(tensors) + len(refused) >= MOST:
            raise InputError(f"{shown_path(path)}: more than {MOST:,} tensors: print fewer")
        name = re.sub(r"^\S*(?:debug|eval)\S*:\s*", "", header["name"]).strip()
        if MOVED.search(name) or not body:
            continue  # a view of another, or without numbers
        turned = f"{name} ({TURNED[header['op']]})" if header["op"] in TURNED else name
        tensor = _tensor(turned, header, body)
        if isinstance(tensor, str):
            refused[name] = tensor
        else:
            tensors[turned] = tensor
    if not tensors:
        said = "; ".join(f"{visible(name)}: {reason}" for name, reason in islice(refused.items(), 1))
        raise InputError(f"{shown_path(path)}: {said or 'no tensor of this log has numbers: was it cut?'}")
    return Dump(path, tensors, refused={name: reason for name, reason in refused.items() if name not in tensors})


def _parts(lines: Iterable[str]) -> Iterator[tuple[re.Match[str], Matrix]]:
    """Every header with the numbers behind it."""
    header, body = None, Matrix()
    for line in lines:
        match = _header(line)
        if match is None:
            if header is not None and "sum" not in line:
                body.hold(NUMBER.findall(line.translate(PUNCTUATION).replace("...", " ")))
            continue
        if header is not None:
            yield header, body
        header, body = match, Matrix(body.looked)
    if header is not None:
        yield header, body


def _tensor(name: str, header: re.Match[str], body: Matrix) -> Tensor | str:
    """A tensor, of which the corners may be shown alone; why it cannot be read, where it cannot."""
    shape = tuple(int(size) for size in reversed(header["ne"].split(",")))
    ends = ([*range(SHOWN), *range(size - SHOWN, size)] for size in shape)  # of the outermost axis all are printed
    shown = [
        list(range(size)) if i == 0 or size <= 2 * SHOWN else end
        for i, (size, end) in enumerate(zip(shape, ends, strict=True))
    ]
    if len(body.values) != math.prod(map(len, shown)):
        return f"has {len(body.values)} numbers, where its sizes say {math.prod(map(len, shown))}"
    if math.prod(shape) > MOST_CELLS:
        return f"is of {math.prod(shape):,} numbers, of which its corners are shown: more than are compared"
    precision = WHOLE if header["type"].startswith("i") else precision_of(body.digits)

    def read() -> Values:
        array, known = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
        at = np.ix_(*shown)
        array[at], known[at] = np.reshape(body.values, [len(places) for places in shown]), True
        return Values(array, precision, None if known.all() else known)

    return Tensor(name, shape, read)
