"""Scale: every value times a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, passed_on
from tui_transformer.engine.ops.elementwise import Elementwise


@dataclass(frozen=True)
class Scale(Elementwise):
    """x · factor; `expression` says what the factor is, as "÷ √d_k", and `of` what x is."""

    undone_from: ClassVar[tuple[int, ...]] = ()
    chain: ClassVar[tuple[str, ...]] = ("∂y · factor",)
    factor: float
    expression: str
    of: str = "score"

    @property
    def formula(self) -> str:
        """The score, or what else it is, times the factor."""
        return f"{self.of} {self.expression}"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A Python float keeps float32 arrays float32."""
        return backend.xp.multiply(inputs[0], self.factor, out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x · factor."""
        return (backend.xp.multiply(gradient, self.factor, out=backend.like(gradient)),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The cell and the factor."""
        cell = sources[0].operand(*index)
        return Working((Value(self.of, cell.value, cell), self._value()), cell.value * self.factor)

    def _value(self) -> Value:
        """The number that the cell is divided by or multiplied with, as it is written."""
        if self.expression.startswith("÷") and self.factor:
            return Value(self.expression, 1.0 / self.factor)
        if self.expression.startswith("·"):
            return Value(self.expression, self.factor)
        return Value("· factor", self.factor, note=self.expression)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times the factor."""
        return passed_on(gradient.operand(*index), self.factor, "· factor", self.expression)
