"""The log of llama.cpp's `llama-eval-callback`: every tensor of the graph, large ones by their corners."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, held
from tui_transformer.diagnosis.dumps.numbers import NUMBER
from tui_transformer.diagnosis.dumps.precision import WHOLE, printed_precision
from tui_transformer.errors import InputError
from tui_transformer.text.files import shown_path

HEADER = re.compile(
    r"(?P<name>[^\s:=](?:[^=\n]*?\S)?)\s+=\s+\((?P<type>\w+)\)\s+(?P<op>[A-Z_0-9]+)\b.*=\s+"
    r"\{\s*(?P<ne>\d+(?:,\s*\d+){0,3})\s*\}\s*$"
)
"""`ggml_debug:   Qcur-0 = (f32)  MUL_MAT(…) = {64, 5, 1, 1}`: sizes, the axis that runs fastest first."""

MOVED = re.compile(r"\((?:view|reshaped|permuted|cont|copy of.*|transposed)\)")
TURNED = {"ROPE": "rope"}
LONGEST = 1 << 10
"""Characters of a header; a row of numbers may have many more, and is not searched for one."""

SHOWN = 3
"""So many cells of either end of an axis are printed where there are more than twice as many."""


def is_callback_log(text: str) -> bool:
    """Whether a text is such a log."""
    return any(map(_header, text[: 1 << 16].splitlines()))


def _header(line: str) -> re.Match[str] | None:
    return HEADER.search(line) if len(line) <= LONGEST else None


def callback_log(path: Path, text: str) -> Dump:
    """The tensors of a log; of those that were made in several steps, the last.

    Raises:
        InputError: None has numbers.
    """
    tensors: dict[str, Tensor] = {}
    for header, lines in _parts(text.splitlines()):
        tensor = _tensor(header, lines)
        if tensor is not None:
            tensors[tensor.name] = tensor
    if not tensors:
        raise InputError(f"{shown_path(path)}: no tensor of this log has numbers: was it cut?")
    return Dump(path, tensors)


def _parts(lines: Sequence[str]) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Every header with the lines behind it."""
    header, body = None, list[str]()
    for line in lines:
        match = _header(line)
        if match is None:
            body.append(line)
            continue
        if header is not None:
            yield header, body
        header, body = match, []
    if header is not None:
        yield header, body


def _tensor(header: re.Match[str], lines: Sequence[str]) -> Tensor | None:
    name = re.sub(r"^\S*(?:debug|eval)\S*:\s*", "", header["name"]).strip()
    if MOVED.search(name):
        return None
    name = f"{name} ({TURNED[header['op']]})" if header["op"] in TURNED else name
    shape = tuple(int(size) for size in reversed(header["ne"].split(",")))
    places = np.meshgrid(*(_shown(size, whole=i == 0) for i, size in enumerate(shape)), indexing="ij")
    words = [word for line in lines if "sum" not in line for word in _numbers(line)]
    if not words or len(words) != places[0].size:
        return None
    array, known = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
    at = tuple(place.reshape(-1) for place in places)
    array[at], known[at] = [float(word) for word in words], True
    whole = header["type"].startswith("i")
    precision = WHOLE if whole else printed_precision(words)
    return held(name, array, precision, None if known.all() else known)


def _numbers(line: str) -> list[str]:
    return NUMBER.findall(line.replace("[", " ").replace("]", " ").replace(",", " ").replace("...", " "))


def _shown(size: int, *, whole: bool) -> list[int]:
    """The places of an axis that are printed; of the outermost all are."""
    if whole or size <= 2 * SHOWN:
        return list(range(size))
    return [*range(SHOWN), *range(size - SHOWN, size)]
