"""Ops that make every cell of the result from the same cell of their inputs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.blocks import by_cells
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Op, passed_on
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class Elementwise(Op):
    """One function for every cell.

    Class attributes:
        cost: Floating-point operations a cell, each function counted as one.
    """

    cost: ClassVar[int] = 1
    overwrites: ClassVar[bool] = True

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the first input."""
        return inputs[0]

    def flops(self, *inputs: Axes) -> int:
        """So many a cell."""
        return self.cost * super().flops(*inputs)


@dataclass(frozen=True)
class SelfGated(Elementwise):
    """x · s(x), where the share s(x) goes from 0 to 1.

    Class attributes:
        symbol: What the share is called.
        definition: The share, written out.
        slope_text: The derivative of x · s(x), written out.
    """

    symbol: ClassVar[str]
    definition: ClassVar[str]
    slope_text: ClassVar[str]

    @abstractmethod
    def share(self, backend: Backend, x: Array) -> Array:
        """s(x) of an array, in a new one."""

    @abstractmethod
    def share_at(self, x: float) -> float:
        """s(x) of one value, in float64."""

    @abstractmethod
    def slope_at(self, x: float) -> float:
        """The derivative of x · s(x) at one value, in float64."""

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The values times their shares."""
        result = backend.like(inputs[0]) if out is None else out

        def weigh(x: Array, target: Array) -> None:
            backend.xp.multiply(x, self.share(backend, x), out=target)

        by_cells(backend, weigh, inputs[0], result)
        return result

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value and its share."""
        cell = sources[0].operand(*index)
        share = self.share_at(cell.value)
        items = (Value("x", cell.value, cell), Value(self.symbol, share, note=self.definition))
        return Working(items, cell.value * share, f"{spoken(cell.value)} · {spoken(share)}")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times the slope."""
        cell = sources[0].operand(*index)
        note = f"{self.slope_text} at {cell.value:.6g}"
        return passed_on(gradient.operand(*index), self.slope_at(cell.value), "· slope", note, cell)
