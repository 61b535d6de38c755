"""Edits as they are written in a lecture or on the command line, to be made again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tui_transformer.engine.axis import Region, Shape
from tui_transformer.engine.changes import Add, Scale, Set
from tui_transformer.engine.edits import Ablate, Change, Edit
from tui_transformer.engine.program import Program

_OPERATIONS: Mapping[type, str] = {Set: "=", Add: "+=", Scale: "*="}


def as_written(change: Change, program: Program) -> str | None:
    """`encoder.0.self_attention.context[2] = 0`; None where it holds more than can be written in a line."""
    if isinstance(change, Edit):
        return f"{change.name}[{', '.join(map(str, change.index))}] = {change.value!r}"
    place = f"{change.name}{_place(change.region, program.shape(change.name))}"
    if isinstance(change, Ablate):
        return f"{place} = {'mean' if change.mean else 0}"
    if isinstance(change, Set | Add | Scale) and np.ndim(change.values) == 0:
        return f"{place} {_OPERATIONS[type(change)]} {float(np.asarray(change.values))!r}"
    return None


def _place(region: Region, shape: Shape) -> str:
    """The heads, rows and columns in brackets; nothing where these are all."""
    parts = [_part(part, size) for part, size in zip(region, shape, strict=True)]
    return "" if set(parts) == {":"} else f"[{', '.join(parts)}]"


def _part(part: range, size: int) -> str:
    if len(part) == size:
        return ":"
    return str(part.start) if len(part) == 1 else f"{part.start}:{part.stop}"
