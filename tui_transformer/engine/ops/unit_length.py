"""Unit length: a vector divided by its length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Sum, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, whole_rows
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class UnitLength(Op):
    """x ÷ max(‖x‖, ε) over the last axis: products of such vectors are cosines. Input: x (… × d).

    Attributes:
        least: ε; a vector that is shorter is divided by it.
    """

    chain: ClassVar[tuple[str, ...]] = ("(∂y − y Σ ∂y y) ÷ ‖x‖",)
    least: float = 1e-12

    @property
    def formula(self) -> str:
        """The quotient."""
        return "x ÷ ‖x‖"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of x."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Every vector by its length."""
        (x,) = inputs
        return x / self._divisor(backend, x)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x / ‖x‖; of a vector that is shorter than ε, x / ε."""
        divisor = self._divisor(backend, inputs[0])
        along = (gradient * output).sum(axis=-1, keepdims=True) * (divisor > self.least)
        return ((gradient - output * along) / divisor,)

    def _divisor(self, backend: Backend, x: Array) -> Array:
        """max(‖x‖, ε) of every vector."""
        squares = backend.xp.einsum("...i,...i->...", x, x)[..., None]
        return backend.xp.maximum(backend.xp.sqrt(squares), self.least)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A vector is divided as a whole."""
        return whole_rows(region, shape)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The sum of squares, its root, and the quotient."""
        row = sources[0].factor(*index[:-1], None)
        cell, squares = sources[0].operand(*index), Sum("Σ x²", (row,), row.values**2, "x²")
        length = max(float(np.sqrt(squares.total)), self.least)
        items = (Value("x", cell.value, cell), squares, Value("÷ ‖x‖", length, note="√ Σ x²"))
        return Working(items, cell.value / length, equation=f"{spoken(cell.value)} ÷ {spoken(length)}")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient across the vector, divided by its length."""
        del toward
        line = (*index[:-1], None)
        row, made = gradient.factor(*line), output.factor(*line)
        length = max(float(np.sqrt((sources[0].line(*line) ** 2).sum())), self.least)
        along = Sum("Σ ∂y y", (row, made), row.values * made.values * (length > self.least), "∂y y")
        cell, own = row.operand(index[-1]), made.operand(index[-1])
        items = (
            Value("∂y", cell.value, cell),
            Value("y", own.value, own),
            along,
            Value("÷ ‖x‖", length, note="√ Σ x²"),
        )
        return Working(items, (cell.value - own.value * along.total) / length)

    def flops(self, *inputs: Axes) -> int:
        """Square, sum, quotient."""
        return 3 * super().flops(*inputs)
