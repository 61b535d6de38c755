"""Merge heads: the heads of a token side by side again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Axis, Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class MergeHeads(Op):
    """h × n × d_k → n × h·d_k: column j is column j mod d_k of head j ÷ d_k."""

    undone_from: ClassVar[tuple[int, ...]] = (0,)
    chain: ClassVar[tuple[str, ...]] = ("∂y of the head's columns",)

    @property
    def formula(self) -> str:
        """Concatenation."""
        return "heads side by side"

    def axes(self, *inputs: Axes) -> Axes:
        """Tokens × all heads' columns."""
        heads, tokens, width = inputs[0]
        return tokens, Axis("heads · width", heads.size * width.size)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A view where the heads already lie side by side in memory."""
        batch, _, rows, _ = inputs[0].shape
        return inputs[0].swapaxes(1, 2).reshape(batch, rows, -1)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = concat(heads)."""
        batch, heads, rows, width = inputs[0].shape
        return (gradient.reshape(batch, rows, heads, width).swapaxes(1, 2),)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Whole rows, all heads."""
        return region[0], range(shape[1])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows in every head."""
        heads, _, width = whole(inputs[0])
        return ((heads, region[0], width),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The cell of the head that the column belongs to."""
        row, column = index
        head, offset = divmod(column, sources[0].shape[-1])
        cell = sources[0].operand(head, row, offset)
        note = f"column {column} is column {offset} of head {head}"
        return Working((Value("context", cell.value, cell, note),), cell.value)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient of the column that the cell went to."""
        head, row, offset = index
        return passed_on(gradient.operand(row, head * sources[0].shape[-1] + offset))

    def flops(self, *inputs: Axes) -> int:
        """Nothing is computed."""
        return 0
