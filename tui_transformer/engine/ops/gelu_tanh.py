"""GELU by tanh: the approximation that GPT-2 was trained with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.engine.ops.elementwise import SelfGated

RATE, CUBIC = math.sqrt(2.0 / math.pi), 0.044715


@dataclass(frozen=True)
class GeluTanh(SelfGated):
    """x · (1 + tanh(√(2/π) (x + 0.044715 x³))) ÷ 2 (Hendrycks & Gimpel 2016, §2)."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · slope of x s(x)",)
    cost: ClassVar[int] = 8
    symbol: ClassVar[str] = "share"
    definition: ClassVar[str] = "(1 + tanh(…)) ÷ 2"
    slope_text: ClassVar[str] = "of x s(x)"

    @property
    def formula(self) -> str:
        """The approximation."""
        return "x · (1 + tanh(√(2/π)(x + 0.044715 x³))) ÷ 2"

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x s(x); ∂x = s + x · 2 s (1 − s) · √(2/π) (1 + 3 · 0.044715 x²)."""
        x, share = inputs[0], self.share(backend, inputs[0])
        slope = RATE * (1.0 + 3.0 * CUBIC * x * x)
        return (gradient * (share + x * 2.0 * share * (1.0 - share) * slope),)

    def share(self, backend: Backend, x: Array) -> Array:
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

    def share_at(self, x: float) -> float:
        """(1 + tanh(…)) ÷ 2."""
        return 0.5 * (1.0 + math.tanh(RATE * x * (1.0 + CUBIC * x * x)))

    def slope_at(self, x: float) -> float:
        """S + 2 x s (1 − s) √(2/π) (1 + 3 · 0.044715 x²); where s is 0 or 1, x² may be too large to matter."""
        share = self.share_at(x)
        rest = 2.0 * share * (1.0 - share)
        return share + (x * rest * RATE * (1.0 + 3.0 * CUBIC * x * x) if rest else 0.0)
