"""Clamped gating: an activation and a gate whose numbers are kept within a limit (gpt-oss)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, passed_on
from tui_transformer.engine.ops.elementwise import Elementwise
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class ClampedSwish(Elementwise):
    """g σ(α g) with g = min(x, limit) (OpenAI 2025, model card of gpt-oss; Ramachandran et al. 2017)."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · σ (1 + α g (1 − σ)) where x ≤ limit, else 0",)
    cost: ClassVar[int] = 6
    alpha: float = 1.702
    limit: float = 7.0

    @property
    def formula(self) -> str:
        """The definition."""
        return f"g ÷ (1 + e^(−{self.alpha:g} g)), g = min(x, {self.limit:g})"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The clamped value times its share."""
        kept = backend.xp.minimum(inputs[0], self.limit)
        return backend.xp.multiply(kept, self._share(backend, kept), out=backend.like(kept) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = g σ(α g); ∂x = ∂y σ (1 + α g (1 − σ)) below the limit."""
        kept = backend.xp.minimum(inputs[0], self.limit)
        share = self._share(backend, kept)
        slope = share * (1.0 + self.alpha * kept * (1.0 - share))
        return (gradient * slope * (inputs[0] <= self.limit),)

    def _share(self, backend: Backend, kept: Array) -> Array:
        """σ(α g) by tanh, which does not overflow."""
        return 0.5 * (1.0 + backend.xp.tanh(kept * (0.5 * self.alpha)))

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value, what is kept of it, and its share."""
        cell = sources[0].operand(*index)
        kept, share = self._at(cell.value)
        items = (
            Value("x", cell.value, cell),
            Value("g", kept, note=f"min(x, {self.limit:g})"),
            Value("σ(α g)", share, note=f"α = {self.alpha:g}"),
        )
        return Working(items, kept * share, f"{spoken(kept)} · {spoken(share)}")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times the slope."""
        cell = sources[0].operand(*index)
        kept, share = self._at(cell.value)
        slope = share * (1.0 + self.alpha * kept * (1.0 - share)) if cell.value <= self.limit else 0.0
        return passed_on(gradient.operand(*index), slope, "· slope", f"at {cell.value:.6g}", cell)

    def _at(self, x: float) -> tuple[float, float]:
        kept = min(x, self.limit)
        return kept, 0.5 * (1.0 + math.tanh(0.5 * self.alpha * kept))


@dataclass(frozen=True)
class ClampedGate(Elementwise):
    """a · (h + 1) with h = hidden kept within ±limit. Inputs: the activated gate a and the hidden values."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · (h + 1)", "∂y · f(gate) where |hidden| ≤ limit, else 0")
    cost: ClassVar[int] = 4
    limit: float = 7.0

    @property
    def formula(self) -> str:
        """The product."""
        return f"f(gate) · (1 + hidden), hidden within ±{self.limit:g}"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The product with the clamped values."""
        gate, hidden = inputs
        kept = backend.xp.clip(hidden, -self.limit, self.limit) + 1.0
        return backend.xp.multiply(gate, kept, out=backend.like(gate) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a (h + 1)."""
        gate, hidden = inputs
        kept = backend.xp.clip(hidden, -self.limit, self.limit)
        return gradient * (kept + 1.0), gradient * gate * (kept == hidden)

    def explain(self, index: Index, *sources: Source) -> Working:
        """Both factors."""
        gate, hidden = (source.operand(*index) for source in sources)
        kept = self._kept(hidden.value)
        items = (
            Value("f(gate)", gate.value, gate),
            Value("hidden", hidden.value, hidden),
            Value("h", kept, note=f"within ±{self.limit:g}"),
            Value("· (h + 1)", kept + 1.0),
        )
        return Working(items, gate.value * (kept + 1.0), f"{spoken(gate.value)} · ({spoken(kept)} + 1)")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times the other factor; nothing beyond the limit."""
        gate, hidden = (source.operand(*index) for source in sources)
        kept = self._kept(hidden.value)
        cell = gradient.operand(*index)
        if toward == 0:
            return passed_on(cell, kept + 1.0, "· (h + 1)", f"hidden within ±{self.limit:g}", hidden)
        inside = kept == hidden.value
        return passed_on(cell, gate.value * inside, "· f(gate)", "" if inside else "beyond the limit: 0", gate)

    def _kept(self, hidden: float) -> float:
        return max(-self.limit, min(self.limit, hidden))
