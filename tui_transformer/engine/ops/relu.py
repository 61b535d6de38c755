"""ReLU: negative values become 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import RESULT, Gradients, passed_on
from tui_transformer.engine.ops.elementwise import Elementwise
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class Relu(Elementwise):
    """max(0, x), elementwise (Nair & Hinton 2010)."""

    undone_from: ClassVar[tuple[int, ...]] = (RESULT,)
    chain: ClassVar[tuple[str, ...]] = ("∂y where x > 0, else 0",)
    signed: ClassVar[bool] = False

    @property
    def formula(self) -> str:
        """The maximum with 0."""
        return "max(0, x)"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """max(0, x)."""
        return backend.xp.maximum(inputs[0], 0.0, out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = max(0, x); y > 0 where x > 0."""
        return (backend.xp.multiply(gradient, output > 0.0, out=backend.like(gradient)),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value and whether it passes."""
        cell = sources[0].operand(*index)
        note = "above 0: passes" if cell.value > 0 else "not above 0: becomes 0"
        return Working((Value("x", cell.value, cell, note),), max(0.0, cell.value), f"max(0, {spoken(cell.value)})")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient where the value passes, else 0."""
        cell = sources[0].operand(*index)
        note = "1: x is above 0" if cell.value > 0 else "0: x is not above 0"
        return passed_on(gradient.operand(*index), float(cell.value > 0), "· slope", note, cell)
