"""ReLU squared: negative values become 0, the others their square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, passed_on
from tui_transformer.engine.ops.elementwise import Elementwise
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class ReluSquared(Elementwise):
    """max(0, x)², elementwise (So et al. 2021, "Primer", §4)."""

    cost: ClassVar[int] = 2
    chain: ClassVar[tuple[str, ...]] = ("∂y · 2 max(0, x)",)
    signed: ClassVar[bool] = False

    @property
    def formula(self) -> str:
        """The square of the maximum with 0."""
        return "max(0, x)²"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """max(0, x), times itself."""
        result = backend.xp.maximum(inputs[0], 0.0, out=backend.like(inputs[0]) if out is None else out)
        return backend.xp.multiply(result, result, out=result)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = max(0, x)²; ∂x = ∂y · 2 max(0, x)."""
        return (gradient * (2.0 * backend.xp.maximum(inputs[0], 0.0)),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value, whether it passes, and its square."""
        cell = sources[0].operand(*index)
        passed = max(0.0, cell.value)
        note = "above 0: squared" if cell.value > 0 else "not above 0: becomes 0"
        items = (Value("x", cell.value, cell, note), Value("max(0, x)", passed))
        text = f"max(0, {spoken(cell.value)})"
        return Working(items, passed * passed, f"{text} · {text}")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times 2 max(0, x)."""
        cell = sources[0].operand(*index)
        return passed_on(gradient.operand(*index), 2.0 * max(0.0, cell.value), "· slope", "2 max(0, x)", cell)
