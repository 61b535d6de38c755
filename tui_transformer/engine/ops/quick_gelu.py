"""Quick GELU: the value times the logistic function of 1.702 times it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.engine.ops.elementwise import SelfGated

STEEPNESS = 1.702


@dataclass(frozen=True)
class QuickGelu(SelfGated):
    """x · σ(1.702 x) with σ(x) = 1 ÷ (1 + e^−x), close to GELU (Hendrycks & Gimpel 2016, §2)."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · s (1 + 1.702 x (1 − s)), s = σ(1.702 x)",)
    cost: ClassVar[int] = 6
    symbol: ClassVar[str] = "σ(1.702 x)"
    definition: ClassVar[str] = "1 ÷ (1 + e^(−1.702 x))"
    slope_text: ClassVar[str] = "s (1 + 1.702 x (1 − s))"

    @property
    def formula(self) -> str:
        """The definition."""
        return "x ÷ (1 + e^(−1.702 x))"

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x s, s = σ(1.702 x); ∂x = s (1 + 1.702 x (1 − s))."""
        share = self.share(backend, inputs[0])
        return (gradient * share * (1.0 + STEEPNESS * inputs[0] * (1.0 - share)),)

    def share(self, backend: Backend, x: Array) -> Array:
        """σ(1.702 x) by tanh, which does not overflow."""
        share = backend.xp.multiply(x, 0.5 * STEEPNESS, out=backend.like(x))
        backend.xp.tanh(share, out=share)
        share += 1.0
        share *= 0.5
        return share

    def share_at(self, x: float) -> float:
        """σ(1.702 x)."""
        return 0.5 * (1.0 + math.tanh(0.5 * STEEPNESS * x))

    def slope_at(self, x: float) -> float:
        """S (1 + 1.702 x (1 − s))."""
        share = self.share_at(x)
        return share * (1.0 + STEEPNESS * x * (1.0 - share))
