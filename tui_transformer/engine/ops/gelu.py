"""GELU: the value times the probability that a standard normal variable is below it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.engine.ops.elementwise import SelfGated


@dataclass(frozen=True)
class Gelu(SelfGated):
    """x · Φ(x) with Φ(x) = (1 + erf(x / √2)) / 2 (Hendrycks & Gimpel 2016)."""

    undone_from: ClassVar[tuple[int, ...]] = (0,)
    chain: ClassVar[tuple[str, ...]] = ("∂y · (Φ(x) + x φ(x))",)
    cost: ClassVar[int] = 5
    symbol: ClassVar[str] = "Φ(x)"
    definition: ClassVar[str] = "(1 + erf(x ÷ √2)) ÷ 2"
    slope_text: ClassVar[str] = "Φ(x) + x φ(x)"

    @property
    def formula(self) -> str:
        """The definition with the error function."""
        return "x · (1 + erf(x ÷ √2)) ÷ 2"

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x Φ(x); ∂x = Φ(x) + x φ(x) with the normal density φ."""
        x = inputs[0]
        density = backend.xp.exp(-0.5 * x * x) * (1.0 / math.sqrt(2.0 * math.pi))
        return (gradient * (self.share(backend, x) + x * density),)

    def share(self, backend: Backend, x: Array) -> Array:
        """Φ(x)."""
        phi = backend.erf(x * math.sqrt(0.5))
        phi += 1.0
        phi *= 0.5
        return phi

    def share_at(self, x: float) -> float:
        """Φ(x)."""
        return 0.5 * (1.0 + math.erf(x * math.sqrt(0.5)))

    def slope_at(self, x: float) -> float:
        """Φ(x) + x φ(x), with the normal density φ."""
        return self.share_at(x) + x * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
