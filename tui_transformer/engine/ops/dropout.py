"""Dropout: some values set to 0 while a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, passed_on
from tui_transformer.engine.ops.elementwise import Elementwise
from tui_transformer.engine.spoken import spoken


@dataclass(frozen=True)
class Dropout(Elementwise):
    """x ÷ (1 − p) where kept, else 0: the expected value is x (Srivastava et al. 2014, §10: inverted dropout).

    Inputs: x, and which of its cells are kept. p is the share that is dropped. Only programs for training have it.
    """

    undone_from: ClassVar[tuple[int, ...]] = (1,)
    chain: ClassVar[tuple[str, ...]] = ("∂y · kept ÷ (1 − p)", "")
    cost: ClassVar[int] = 2
    rate: float

    @property
    def formula(self) -> str:
        """Kept values are scaled up."""
        return "x · kept ÷ (1 − p)"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Kept values of x, ÷ (1 − p)."""
        x, kept = inputs
        result = backend.xp.multiply(x, kept, out=backend.like(x) if out is None else out)
        result *= self._factor
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x · kept ÷ (1 − p)."""
        toward_x = backend.xp.multiply(gradient, inputs[1], out=backend.like(gradient))
        toward_x *= self._factor
        return toward_x, None

    @property
    def _factor(self) -> float:
        return 1.0 / (1.0 - self.rate)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The value, whether it is kept, and the scale."""
        cell, kept = (source.operand(*index) for source in sources)
        items = (
            Value("x", cell.value, cell),
            Value("kept", kept.value, kept),
            Value("1 ÷ (1 − p)", self._factor, note=f"p = {self.rate:g}"),
        )
        left = f"{spoken(cell.value)} · {spoken(kept.value)} · {spoken(self._factor)}"
        return Working(items, cell.value * kept.value * self._factor, left)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient where the cell is kept, scaled."""
        kept = sources[1].operand(*index)
        return passed_on(gradient.operand(*index), kept.value * self._factor, "kept ÷ (1 − p)", read=kept)
