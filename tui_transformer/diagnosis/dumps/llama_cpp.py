"""The log of llama.cpp's `llama-eval-callback`: every tensor of the graph, large ones by their corners."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, Values
from tui_transformer.diagnosis.dumps.log import MOST
from tui_transformer.diagnosis.dumps.numbers import NUMBER, Matrix
from tui_transformer.diagnosis.dumps.precision import WHOLE, Precision, precision_of
from tui_transformer.engine.axis import Shape
from tui_transformer.errors import InputError
from tui_transformer.text.display import visible
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

MOST_CELLS = 1 << 26
"""Numbers of a tensor that shows its corners."""

SHOWN = 3
"""So many cells of either end of an axis are printed where there are more than twice as many."""


def is_callback_log(begin: Iterable[str]) -> bool:
    """Whether the first lines of a text are those of such a log."""
    return any(map(_header, begin))


def _header(line: str) -> re.Match[str] | None:
    return HEADER.search(line) if len(line) <= LONGEST and " = (" in line and line.rstrip().endswith("}") else None


def callback_log(path: Path, lines: Iterable[str]) -> Dump:
    """The tensors of a log; of those that were made in several steps, the last.

    Raises:
        InputError: None has numbers.
    """
    tensors: dict[str, Tensor] = {}
    refused: dict[str, str] = {}
    for header, body in _parts(lines):
        if len(tensors) + len(refused) >= MOST:
            raise InputError(f"{shown_path(path)}: more than {MOST:,} tensors: print fewer")
        tensor = _tensor(header, body)
        if isinstance(tensor, str):
            refused[_name(header)] = tensor
        elif tensor is not None:
            tensors[tensor.name] = tensor
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
                body.hold(_numbers(line))
            continue
        if header is not None:
            yield header, body
        header, body = match, Matrix(body.looked)
    if header is not None:
        yield header, body


def _name(header: re.Match[str]) -> str:
    return re.sub(r"^\S*(?:debug|eval)\S*:\s*", "", header["name"]).strip()


def _tensor(header: re.Match[str], body: Matrix) -> Tensor | str | None:
    """A tensor; why it cannot be read, where it cannot; None where it is a view of another or has no numbers."""
    name = _name(header)
    if MOVED.search(name) or not body:
        return None
    name = f"{name} ({TURNED[header['op']]})" if header["op"] in TURNED else name
    shape = tuple(int(size) for size in reversed(header["ne"].split(",")))
    shown = [_shown(size, whole=i == 0) for i, size in enumerate(shape)]
    if len(body.values) != math.prod(map(len, shown)):
        return f"has {len(body.values)} numbers, where its sizes say {math.prod(map(len, shown))}"
    if math.prod(shape) > MOST_CELLS:
        return f"is of {math.prod(shape):,} numbers, of which its corners are shown: more than are compared"
    precision = WHOLE if header["type"].startswith("i") else precision_of(body.digits)
    return Tensor(name, shape, lambda: _values(shape, shown, body, precision))


def _values(shape: Shape, shown: Sequence[Sequence[int]], body: Matrix, precision: Precision) -> Values:
    """An array with the cells that are shown, and which these are."""
    array, known = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
    at = np.ix_(*shown)
    array[at], known[at] = np.reshape(body.values, [len(places) for places in shown]), True
    return Values(array, precision, None if known.all() else known)


def _numbers(line: str) -> list[str]:
    return NUMBER.findall(line.replace("[", " ").replace("]", " ").replace(",", " ").replace("...", " "))


def _shown(size: int, *, whole: bool) -> list[int]:
    """The places of an axis that are printed; of the outermost all are."""
    if whole or size <= 2 * SHOWN:
        return list(range(size))
    return [*range(SHOWN), *range(size - SHOWN, size)]
