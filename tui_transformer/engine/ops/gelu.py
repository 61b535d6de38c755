"""GELU: the value times the probability that a standard normal variable is below it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.blocks import by_cells
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class Gelu(Op):
    """x · Φ(x) with Φ(x) = (1 + erf(x / √2)) / 2 (Hendrycks & Gimpel 2016)."""

    undone_from: ClassVar[tuple[int, ...]] = (0,)
    chain: ClassVar[tuple[str, ...]] = ("∂y · (Φ(x) + x φ(x))",)
    overwrites: ClassVar[bool] = True

    @property
    def formula(self) -> str:
        """The definition with the error function."""
        return "x · (1 + erf(x ÷ √2)) ÷ 2"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the input."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The value times its share."""
        result = backend.like(inputs[0]) if out is None else out

        def weigh(x: Array, target: Array) -> None:
            backend.xp.multiply(x, self._phi(backend, x), out=target)

        by_cells(backend, weigh, inputs[0], result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x Φ(x); ∂x = Φ(x) + x φ(x) with the normal density φ."""
        x = inputs[0]
        density = backend.xp.exp(-0.5 * x * x) * (1.0 / math.sqrt(2.0 * math.pi))
        return (gradient * (self._phi(backend, x) + x * density),)

    def _phi(self, backend: Backend, x: Array) -> Array:
        phi = backend.erf(x * math.sqrt(0.5))
        phi += 1.0
        phi *= 0.5
        return phi

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value and its share."""
        cell = sources[0].operand(*index)
        phi = 0.5 * (1.0 + math.erf(cell.value * math.sqrt(0.5)))
        items = (Value("x", cell.value, cell), Value("Φ(x)", phi, note="(1 + erf(x ÷ √2)) ÷ 2"))
        return Working(items, cell.value * phi)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times Φ(x) + x φ(x), with the normal density φ."""
        cell = sources[0].operand(*index)
        phi = 0.5 * (1.0 + math.erf(cell.value * math.sqrt(0.5)))
        slope = phi + cell.value * math.exp(-0.5 * cell.value * cell.value) / math.sqrt(2.0 * math.pi)
        return passed_on(gradient.operand(*index), slope, "· slope", f"Φ(x) + x φ(x) at {cell.value:.6g}", cell)

    def flops(self, *inputs: Axes) -> int:
        """Product, error function, sum, product, product."""
        return 5 * super().flops(*inputs)
