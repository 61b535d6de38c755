"""Edits in words: which step or weight is set, which part of it, and to what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.axis import Region, Shape
from tui_transformer.engine.changes import Add, Scale, Set
from tui_transformer.engine.edits import KINDS, Ablate, Change, Edit, Patch
from tui_transformer.engine.number_format import minus, spoken
from tui_transformer.engine.program import Program
from tui_transformer.explorer.state.break_names import break_titles
from tui_transformer.explorer.state.session import Session

HEADS_OF = ".context"
"""A head is taken out here; it is called after the attention alone."""


@dataclass(frozen=True)
class FromSentence(Patch):
    """Values that a step has in another sentence.

    Attributes:
        sentence: The other sentence.
    """

    sentence: str = ""

    @property
    def how(self) -> str:
        """From that sentence."""
        return f"patched from “{self.sentence}”"


def words(change: Change, program: Program) -> str:
    """`encoder.0.self_attention head 3 → 0`."""
    if isinstance(change, Edit):
        return f"{change.name}[{', '.join(map(str, change.index))}] → {spoken(change.value, 6)}"
    change = change.placed(program, {})  # its cells may be those of another sentence
    part = _part(change.region, program.shape(change.name))
    name = change.name.removesuffix(HEADS_OF) if part.startswith(KINDS[0]) else change.name
    return " ".join(filter(None, (name, part, _value(change))))


def active(edits: Sequence[Change], program: Program) -> str:
    """All edits in a few words: the one, or how many and the last of them; "" for none."""
    if not edits:
        return ""
    last = words(edits[-1], program)
    return last if len(edits) == 1 else f"{len(edits)} edits, last {last}"


def broken(session: Session) -> str:
    """The breaks in a few words: the one, or how many; "" for none."""
    titles = break_titles(session.breaks)
    if not titles:
        return ""
    return f"broken: {titles[0]}" if len(titles) == 1 else f"{len(titles)} broken"


def _value(change: Change) -> str:
    if isinstance(change, Ablate):
        return "→ mean" if change.mean else "→ 0"
    if isinstance(change, Set | Add | Scale):
        return f"{_SIGNS[type(change)]} {minus(f'{change.values:g}')}" if np.ndim(change.values) == 0 else change.how
    return change.how.removeprefix("patched ") if isinstance(change, FromSentence) else change.how


_SIGNS: Mapping[type, str] = {Set: "→", Add: "+", Scale: "×"}


def _part(region: Region, shape: Shape) -> str:
    kinds = zip(KINDS[-len(shape) :], region, shape, strict=True)
    return " ".join(_line(kind, part) for kind, part, size in kinds if len(part) < size)


def _line(kind: str, part: range) -> str:
    return f"{kind} {part.start}" if len(part) == 1 else f"{kind}s {part.start}–{part.stop - 1}"
