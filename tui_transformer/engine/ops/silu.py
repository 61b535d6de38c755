"""SiLU: the value times its logistic function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.engine.ops.elementwise import SelfGated


@dataclass(frozen=True)
class Silu(SelfGated):
    """x · σ(x) with σ(x) = 1 ÷ (1 + e^−x), also called swish (Elfwing et al. 2017)."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · σ(x) (1 + x (1 − σ(x)))",)
    cost: ClassVar[int] = 5
    symbol: ClassVar[str] = "σ(x)"
    definition: ClassVar[str] = "1 ÷ (1 + e^−x)"
    slope_text: ClassVar[str] = "σ (1 + x (1 − σ))"

    @property
    def formula(self) -> str:
        """The definition."""
        return "x ÷ (1 + e^−x)"

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x σ(x); ∂x = σ (1 + x (1 − σ))."""
        share = self.share(backend, inputs[0])
        return (gradient * share * (1.0 + inputs[0] * (1.0 - share)),)

    def share(self, backend: Backend, x: Array) -> Array:
        """σ(x) by tanh, which does not overflow."""
        share = backend.xp.multiply(x, 0.5, out=backend.like(x))
        backend.xp.tanh(share, out=share)
        share += 1.0
        share *= 0.5
        return share

    def share_at(self, x: float) -> float:
        """σ(x)."""
        return 0.5 * (1.0 + math.tanh(0.5 * x))

    def slope_at(self, x: float) -> float:
        """σ (1 + x (1 − σ))."""
        share = self.share_at(x)
        return share * (1.0 + x * (1.0 - share))
