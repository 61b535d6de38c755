"""GELU by tanh: the approximation that GPT-2 was trained with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.blocks import by_cells
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on

RATE, CUBIC = math.sqrt(2.0 / math.pi), 0.044715


@dataclass(frozen=True)
class GeluTanh(Op):
    """x · (1 + tanh(√(2/π) (x + 0.044715 x³))) ÷ 2 (Hendrycks & Gimpel 2016, §2)."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · slope of x s(x)",)
    overwrites: ClassVar[bool] = True

    @property
    def formula(self) -> str:
        """The approximation."""
        return "x · (1 + tanh(√(2/π)(x + 0.044715 x³))) ÷ 2"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the input."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """X times its share."""
        result = backend.like(inputs[0]) if out is None else out

        def weigh(x: Array, target: Array) -> None:
            backend.xp.multiply(x, self._share(backend, x), out=target)

        by_cells(backend, weigh, inputs[0], result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x s(x); ∂x = s + x · 2 s (1 − s) · √(2/π) (1 + 3 · 0.044715 x²)."""
        x, share = inputs[0], self._share(backend, inputs[0])
        slope = RATE * (1.0 + 3.0 * CUBIC * x * x)
        return (gradient * (share + x * 2.0 * share * (1.0 - share) * slope),)

    def _share(self, backend: Backend, x: Array) -> Array:
        """(1 + tanh(…)) ÷ 2."""
        inner = backend.xp.multiply(x, x, out=backend.like(x))
        inner *= CUBIC
        inner += 1.0
        inner *= x
        inner *= RATE
        backend.xp.tanh(inner, out=inner)
        inner += 1.0
        inner *= 0.5
        return inner

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value and its share."""
        cell = sources[0].operand(*index)
        inner = RATE * cell.value * (1.0 + CUBIC * cell.value * cell.value)
        share = 0.5 * (1.0 + math.tanh(inner))
        items = (Value("x", cell.value, cell), Value("share", share, note="(1 + tanh(…)) ÷ 2"))
        return Working(items, cell.value * share)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times the slope s + 2 x s (1 − s) √(2/π) (1 + 3 · 0.044715 x²)."""
        cell = sources[0].operand(*index)
        x = cell.value
        share = 0.5 * (1.0 + math.tanh(RATE * x * (1.0 + CUBIC * x * x)))
        rest = 2.0 * share * (1.0 - share)
        slope = share + (x * rest * RATE * (1.0 + 3.0 * CUBIC * x * x) if rest else 0.0)
        return passed_on(gradient.operand(*index), slope, "· slope", f"of x s(x) at {x:.6g}", cell)

    def flops(self, *inputs: Axes) -> int:
        """Eight elementwise operations."""
        return 8 * super().flops(*inputs)
