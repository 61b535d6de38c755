"""SiLU: the value times its logistic function."""

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
class Silu(Op):
    """x · σ(x) with σ(x) = 1 ÷ (1 + e^−x), also called swish (Elfwing et al. 2017)."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · σ(x) (1 + x (1 − σ(x)))",)
    overwrites: ClassVar[bool] = True

    @property
    def formula(self) -> str:
        """The definition."""
        return "x ÷ (1 + e^−x)"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the input."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """X times its logistic function."""
        result = backend.like(inputs[0]) if out is None else out

        def weigh(x: Array, target: Array) -> None:
            backend.xp.multiply(x, self._logistic(backend, x), out=target)

        by_cells(backend, weigh, inputs[0], result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x σ(x); ∂x = σ (1 + x (1 − σ))."""
        share = self._logistic(backend, inputs[0])
        return (gradient * share * (1.0 + inputs[0] * (1.0 - share)),)

    def _logistic(self, backend: Backend, x: Array) -> Array:
        """σ(x) by tanh, which does not overflow."""
        share = backend.xp.multiply(x, 0.5, out=backend.like(x))
        backend.xp.tanh(share, out=share)
        share += 1.0
        share *= 0.5
        return share

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value and its share."""
        cell = sources[0].operand(*index)
        share = 0.5 * (1.0 + math.tanh(0.5 * cell.value))
        return Working((Value("x", cell.value, cell), Value("σ(x)", share, note="1 ÷ (1 + e^−x)")), cell.value * share)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times σ (1 + x (1 − σ))."""
        cell = sources[0].operand(*index)
        share = 0.5 * (1.0 + math.tanh(0.5 * cell.value))
        slope = share * (1.0 + cell.value * (1.0 - share))
        return passed_on(gradient.operand(*index), slope, "· slope", f"σ (1 + x (1 − σ)) at {cell.value:.6g}", cell)

    def flops(self, *inputs: Axes) -> int:
        """Five elementwise operations."""
        return 5 * super().flops(*inputs)
