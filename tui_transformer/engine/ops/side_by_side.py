"""Side by side: several vectors as one long one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class SideBySide(Op):
    """Vectors of one width (… × d each), one behind the other on the last axis: … × k·d."""

    undone_from: ClassVar[tuple[int, ...]] = (0,)
    chain: ClassVar[tuple[str, ...]] = ("∂y of its columns",)

    @property
    def formula(self) -> str:
        """Concatenation."""
        return "one behind the other"

    def axes(self, *inputs: Axes) -> Axes:
        """The columns of all."""
        *first, last = inputs[0]
        return (*first, replace(last, size=sum(axes[-1].size for axes in inputs)))

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A copy of all."""
        joined: Array = backend.xp.concatenate(inputs, axis=-1)
        return joined

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = [a; b; …]."""
        width, count = inputs[0].shape[-1], len(inputs)
        return tuple(gradient[..., place * width : (place + 1) * width] for place in range(count))

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Vectors as a whole."""
        return (*region[:-1], range(shape[-1]))

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """Every vector as a whole."""
        return tuple((*region[:-1], whole(shape)[-1]) for shape in inputs)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The cell that it is a copy of."""
        place, column = divmod(index[-1], sources[0].shape[-1])
        cell = sources[place].operand(*index[:-1], column)
        note = f"column {index[-1]} is column {column} of the vector {place}"
        return Working((Value("x", cell.value, cell, note),), cell.value)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient of the column that the cell was copied to."""
        width = sources[0].shape[-1]
        return passed_on(gradient.operand(*index[:-1], toward * width + index[-1]))

    def flops(self, *inputs: Axes) -> int:
        """Nothing is computed."""
        return 0
