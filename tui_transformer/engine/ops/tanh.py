"""Tanh: every value between −1 and 1."""

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
class Tanh(Elementwise):
    """tanh(x) = (e^x − e^−x) ÷ (e^x + e^−x)."""

    undone_from: ClassVar[tuple[int, ...]] = (RESULT,)
    chain: ClassVar[tuple[str, ...]] = ("∂y · (1 − y²)",)

    @property
    def formula(self) -> str:
        """The function."""
        return "tanh(x)"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """One function a cell."""
        return backend.xp.tanh(inputs[0], out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = tanh(x); ∂x = ∂y (1 − y²)."""
        return (gradient * (1.0 - output * output),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value and its tanh."""
        cell = sources[0].operand(*index)
        result = math.tanh(cell.value)
        return Working((Value("x", cell.value, cell), Value("tanh(x)", result)), result, f"tanh({spoken(cell.value)})")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times 1 − y²."""
        made = output.operand(*index)
        return passed_on(gradient.operand(*index), 1.0 - made.value**2, "· slope", "1 − y²", made)
