"""Soft cap: every value kept between −cap and cap, nearly as it is while it is small."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import RESULT, Gradients, Op, passed_on
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class SoftCap(Op):
    """c · tanh(x ÷ c) (Gemma Team 2024, "Gemma 2", §2)."""

    undone_from: ClassVar[tuple[int, ...]] = (RESULT,)
    chain: ClassVar[tuple[str, ...]] = ("∂y · (1 − (y ÷ c)²)",)
    overwrites: ClassVar[bool] = True
    cap: float

    @property
    def formula(self) -> str:
        """The definition."""
        return f"{self.cap:g} · tanh(x ÷ {self.cap:g})"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the input."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Quotient, tanh, product."""
        xp, result = backend.xp, backend.like(inputs[0]) if out is None else out
        xp.divide(inputs[0], self.cap, out=result)
        xp.tanh(result, out=result)
        return xp.multiply(result, self.cap, out=result)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = c tanh(x / c); ∂x = ∂y (1 − (y / c)²)."""
        share = output / self.cap
        return (gradient * (1.0 - share * share),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value, the cap, and the tanh of their quotient."""
        cell = sources[0].operand(*index)
        share = math.tanh(cell.value / self.cap)
        items = (Value("x", cell.value, cell), Value("c", self.cap), Value("tanh(x ÷ c)", share))
        return Working(items, self.cap * share, f"{spoken(self.cap)} · tanh({spoken(cell.value)} ÷ {spoken(self.cap)})")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times 1 − (y ÷ c)²."""
        made = output.operand(*index)
        slope = 1.0 - (made.value / self.cap) ** 2
        return passed_on(gradient.operand(*index), slope, "· slope", f"1 − (y ÷ {self.cap:g})²", made)

    def flops(self, *inputs: Axes) -> int:
        """Quotient, tanh, product."""
        return 3 * super().flops(*inputs)
