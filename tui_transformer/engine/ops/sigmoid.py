"""Sigmoid: every value as a share from 0 to 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import RESULT, Gradients, passed_on
from tui_transformer.engine.ops.elementwise import Elementwise
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class Sigmoid(Elementwise):
    """1 ÷ (1 + e^−x)."""

    undone_from: ClassVar[tuple[int, ...]] = (RESULT,)
    cost: ClassVar[int] = 3
    signed: ClassVar[bool] = False
    chain: ClassVar[tuple[str, ...]] = ("∂y · (y (1 − y))",)

    @property
    def formula(self) -> str:
        """The function."""
        return "1 ÷ (1 + e^−x)"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """By tanh, which does not overflow."""
        xp, result = backend.xp, backend.like(inputs[0]) if out is None else out
        xp.multiply(inputs[0], 0.5, out=result)
        xp.tanh(result, out=result)
        result += 1.0
        result *= 0.5
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = 1 ÷ (1 + e^−x); ∂x = ∂y y (1 − y)."""
        return (gradient * (output * (1.0 - output)),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value and its share."""
        cell = sources[0].operand(*index)
        result = 0.5 * (1.0 + math.tanh(0.5 * cell.value))
        items = (Value("x", cell.value, cell), Value("1 ÷ (1 + e^−x)", result))
        return Working(items, result, f"1 ÷ (1 + e^({spoken(-cell.value)}))")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times y (1 − y)."""
        made = output.operand(*index)
        return passed_on(gradient.operand(*index), made.value * (1.0 - made.value), "· slope", "y (1 − y)", made)
