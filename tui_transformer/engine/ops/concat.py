"""Ops that put arrays beside each other: heads of a token, vectors, rows of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui_transformer.engine.axis import Axes, Axis, Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class MergeHeads(Op):
    """h × n × d_k → n × h·d_k: column j is column j mod d_k of head j ÷ d_k."""

    definition = "heads side by side"
    whole_rows = True
    cost = 0
    undone_from = (0,)
    chain = ("∂y of the head's columns",)

    def axes(self, *inputs: Axes) -> Axes:
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

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        heads, _, width = whole(inputs[0])
        return ((heads, region[0], width),)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, column = index
        head, offset = divmod(column, inputs[0].shape[-1])
        cell = inputs[0].operand(head, row, offset)
        note = f"column {column} is column {offset} of head {head}"
        return Working((Value("context", cell.value, cell, note),), cell.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        head, row, offset = index
        return passed_on(gradient.operand(row, head * inputs[0].shape[-1] + offset))


@dataclass(frozen=True)
class SideBySide(Op):
    """Vectors of one width (… × d each), one behind the other on the last axis: … × k·d."""

    definition = "one behind the other"
    whole_rows = True
    cost = 0
    undone_from = (0,)
    chain = ("∂y of its columns",)

    def axes(self, *inputs: Axes) -> Axes:
        *first, last = inputs[0]
        return (*first, replace(last, size=sum(axes[-1].size for axes in inputs)))

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        joined: Array = backend.xp.concatenate(inputs, axis=-1)
        return joined

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = [a; b; …]."""
        width, count = inputs[0].shape[-1], len(inputs)
        return tuple(gradient[..., place * width : (place + 1) * width] for place in range(count))

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return tuple((*region[:-1], whole(shape)[-1]) for shape in inputs)

    def explain(self, index: Index, *inputs: Source) -> Working:
        place, column = divmod(index[-1], inputs[0].shape[-1])
        cell = inputs[place].operand(*index[:-1], column)
        note = f"column {index[-1]} is column {column} of the vector {place}"
        return Working((Value("x", cell.value, cell, note),), cell.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        width = inputs[0].shape[-1]
        return passed_on(gradient.operand(*index[:-1], toward * width + index[-1]))


@dataclass(frozen=True)
class Extend(Op):
    """A cache of keys or values, one step later (Pope et al. 2022, §3.1).

    Inputs: kept rows (g × p × d_k), new rows (g × n × d_k). Result: g × (p + n) × d_k.
    """

    definition = "kept rows, then new rows"
    cost = 0
    chain = ("∂y of the kept rows", "∂y of the new rows")

    def axes(self, *inputs: Axes) -> Axes:
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
        return region[0], range(shape[1]), range(shape[2])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return tuple((region[0], *whole(shape)[1:]) for shape in inputs)

    def explain(self, index: Index, *inputs: Source) -> Working:
        head, row, column = index
        past = inputs[0].shape[1]
        kept = row < past
        cell = inputs[0].operand(*index) if kept else inputs[1].operand(head, row - past, column)
        note = "kept from an earlier token" if kept else "computed for this token"
        return Working((Value("row", cell.value, cell, note),), cell.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        head, row, column = index
        return passed_on(gradient.operand(head, row + toward * inputs[0].shape[1], column))
