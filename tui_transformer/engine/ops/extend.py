"""Extend: rows that were kept, and the new ones after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class Extend(Op):
    """A cache of keys or values, one step later (Pope et al. 2022, §3.1).

    Inputs: kept rows (g × p × d_k), new rows (g × n × d_k). Result: g × (p + n) × d_k.
    """

    chain: ClassVar[tuple[str, ...]] = ("∂y of the kept rows", "∂y of the new rows")

    @property
    def formula(self) -> str:
        """One after the other."""
        return "kept rows, then new rows"

    def axes(self, *inputs: Axes) -> Axes:
        """Heads × all tokens × width of a head."""
        (heads, kept, width), (_, new, _) = inputs
        return heads, replace(kept, size=kept.size + new.size), width

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A copy of both: the kept rows stay as they are, so one can go back to them."""
        kept, new = inputs
        past, rows = kept.shape[2], new.shape[2]
        out = backend.empty((*new.shape[:2], past + rows, new.shape[3]), new.dtype)
        out[:, :, :past], out[:, :, past:] = kept, new
        return out

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = [kept; new]."""
        past = inputs[0].shape[2]
        return gradient[:, :, :past], gradient[:, :, past:]

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """All rows of the heads."""
        return region[0], range(shape[1]), range(shape[2])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """All rows of both."""
        return tuple((region[0], *whole(shape)[1:]) for shape in inputs)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The cell that it is a copy of."""
        head, row, column = index
        past = sources[0].shape[1]
        kept = row < past
        cell = sources[0].operand(*index) if kept else sources[1].operand(head, row - past, column)
        note = "kept from an earlier token" if kept else "computed for this token"
        return Working((Value("row", cell.value, cell, note),), cell.value)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient of the row that the cell was copied to."""
        head, row, column = index
        return passed_on(gradient.operand(head, row + toward * sources[0].shape[1], column))

    def flops(self, *inputs: Axes) -> int:
        """Nothing is computed."""
        return 0
