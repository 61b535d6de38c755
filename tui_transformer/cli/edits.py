"""`--edit`: a step or weight changed, in one line such as `0.output[:, 3] += 2*vector.npy`.

The place is as in NumPy: heads (where the step has them), rows, columns; a number, `2:5`, or `:` for all; what is left
out at the end is all. The operations are =, +=, -=, *= and /=. The value is a sum of terms, each with a factor where it
has one:

- a number;
- a file of an array: `vector.npy`, `arrays.npz:name`, `arrays.safetensors:name`;
- `'a text'`: the mean of the step over the tokens of the text, as it is without edits; the difference of two such is a
  direction to steer in;
- `mean(FILE)`: the mean of the step over the tokens of all lines of a text file.

`= mean` alone sets every column to its mean over the positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tui_transformer.analysis.means import means
from tui_transformer.engine.axis import Region, Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.changes import OPEN, Add, Scale, Set
from tui_transformer.engine.edits import KINDS, Ablate, Change, array_of_numbers
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.text.corpus import read_lines
from tui_transformer.text.display import visible

EDIT = re.compile(r"\s*(?P<name>[^\s\[\]=+*/-]+)\s*(?:\[(?P<place>[^\]]*)\])?\s*(?P<op>[-+*/]?=)\s*(?P<value>.+?)\s*")
TERM = re.compile(
    r"\s*(?P<sign>[-+]?)\s*(?:(?P<factor>[0-9.]+(?:e[-+]?[0-9]+)?)\s*\*\s*)?"
    r"(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf)(?![\w./])|mean\((?P<texts>[^)]+)\)"
    r"|'(?P<text>[^']*)'|\"(?P<other>[^\"]*)\"|(?P<file>[^\s+*'\"]+))\s*"
)
EXAMPLES = "write STEP = 0, STEP[3] *= 0.5, STEP += 2*vector.npy or STEP += 'one text' - 'another'"
MEAN = "mean"


def changes(model: Model, program: Program, texts: Sequence[str] | None) -> tuple[Change, ...]:
    """The edits that were given, in order.

    Args:
        model: Computes the means of texts.
        program: Says which axes a step has; its length matters only for a mean over the positions.
        texts: As they were written.

    Raises:
        InputError: One cannot be read, or names no step.
    """
    return tuple(_change(model, program, text) for text in texts or ())


def _change(model: Model, program: Program, text: str) -> Change:
    match = EDIT.fullmatch(text)
    if match is None:
        raise UsageError(f"--edit {visible(text[:60])!r}: {EXAMPLES}")
    name, shape = array_of_numbers(program, match["name"])
    heads, rows, columns = _place(name, shape, match["place"])
    if match["value"] == MEAN:
        return _mean(program, match["op"], Set(name, 0.0, heads, rows, columns))
    values = sum(_terms(model, name, match["value"]), np.zeros(()))
    values = values if np.ndim(values) < 3 or heads is None else np.asarray(values)[heads.start : heads.stop]
    if np.ndim(values) and columns is not None and np.shape(values)[-1] == shape[-1]:
        values = np.asarray(values)[..., columns.start : columns.stop]
    return _OPERATIONS[match["op"]](name, values, heads, rows, columns)


_OPERATIONS: dict[str, Callable[..., Change]] = {
    "=": Set,
    "+=": Add,
    "-=": lambda name, values, *place: Add(name, -values, *place),
    "*=": Scale,
    "/=": lambda name, values, *place: Scale(name, 1 / values, *place),
}


def _mean(program: Program, operation: str, part: Set) -> Change:
    if operation != "=":
        raise UsageError(f"--edit: {part.name} can be set to its mean with =, and not {operation}")
    region: Region = part.placed(program, {}).region
    return Ablate(part.name, region, mean=True)


def _place(name: str, shape: Shape, text: str | None) -> list[range | None]:
    """Heads, rows and columns; None for all of them, or where there are none."""
    kinds, pieces = KINDS[-len(shape) :], [] if text is None else text.split(",")
    if len(pieces) > len(kinds):
        axes = ", ".join(f"{kind}s" for kind in kinds)
        raise UsageError(f"--edit: {name} has {axes}: [{visible(text or '')}] names more")
    parts = [_part(name, kind, piece, size) for kind, piece, size in zip(kinds, pieces, shape, strict=False)]
    return [None] * (3 - len(kinds)) + parts + [None] * (len(kinds) - len(parts))


def _part(name: str, kind: str, text: str, size: int) -> range | None:
    match = re.fullmatch(r"\s*(?:([0-9]{1,9})|([0-9]{0,9})\s*:\s*([0-9]{0,9}))\s*", text)
    if match is None:
        raise UsageError(f"--edit: {visible(text[:40])!r} is no {kind} of {name}: write 3, 2:5 or :")
    if match[1] is not None:
        return range(int(match[1]), int(match[1]) + 1)
    if not match[2] and not match[3]:
        return None
    return range(int(match[2] or 0), int(match[3]) if match[3] else OPEN if kind == "row" else size)


def _terms(model: Model, name: str, text: str) -> Iterator[Host]:
    """The terms of a sum, each with its sign and factor."""
    at = 0
    while at < len(text):
        match = TERM.match(text, at)
        if match is None or (at and not match["sign"]):
            raise UsageError(f"--edit: {visible(text[at : at + 40])!r} is no value: {EXAMPLES}")
        sign, at = -1.0 if match["sign"] == "-" else 1.0, match.end()
        yield sign * float(match["factor"] or 1) * _value(model, name, match)


def _value(model: Model, name: str, match: re.Match[str]) -> Host:
    if match["number"] is not None:
        return np.asarray(float(match["number"]))
    if match["file"] is not None:
        return _array(match["file"])
    text = match["text"] if match["text"] is not None else match["other"]
    if text is None:
        return of_texts(model, Path(match["texts"].strip()), [name])[name]
    return means([model.trace(text, cut=True)], [name])[name]


def of_texts(model: Model, path: Path, names: Sequence[str]) -> dict[str, Host]:
    """The means of steps over the tokens of all lines of a text file, one line at a time.

    Raises:
        InputError: The file cannot be read, or has no line with a token.
    """
    lines = (line.rstrip("\r\n") for line in read_lines([path]) if line.strip())
    return means((model.trace(line, budget=0, cut=True) for line in lines), names)


def _array(text: str) -> Host:
    from tui_transformer.diagnosis.dumps import open_dump

    path, _, name = text.rpartition(":") if ":" in text else (text, "", "")
    tensors = open_dump(Path(path)).tensors
    if not name and len(tensors) != 1:
        raise InputError(f"{visible(text)} holds {len(tensors)} arrays: write {visible(text)}:NAME")
    name = name or next(iter(tensors))
    if name not in tensors:
        raise InputError(
            f"{visible(path)} has no array {visible(name)!r}: it has {', '.join(map(visible, [*tensors][:6]))}"
        )
    return np.asarray(tensors[name].values.array, np.float64)
