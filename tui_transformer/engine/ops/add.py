"""Add: the sum of equally shaped inputs, as in a residual connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class Add(Op):
    """a + b (+ c …), elementwise."""

    undone_from: ClassVar[tuple[int, ...]] = ()
    chain: ClassVar[tuple[str, ...]] = ("∂y",)
    overwrites: ClassVar[bool] = True
    expression: str = "x + sublayer(x)"

    @property
    def formula(self) -> str:
        """The summands, in words of the model."""
        return self.expression

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the first input."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The inputs from left to right."""
        total = backend.xp.add(inputs[0], inputs[1], out=backend.like(inputs[0]) if out is None else out)
        for extra in inputs[2:]:
            total = backend.xp.add(total, extra, out=total)
        return total

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a + b; each addend gets the whole gradient."""
        return tuple(gradient for _ in inputs)

    def explain(self, index: Index, *sources: Source) -> Working:
        """One value an addend."""
        operands = [source.operand(*index) for source in sources]
        items = tuple(Value("+" if i else "", operand.value, operand) for i, operand in enumerate(operands))
        return Working(items, sum(operand.value for operand in operands))

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The whole gradient of the sum."""
        return passed_on(gradient.operand(*index))

    def flops(self, *inputs: Axes) -> int:
        """One addition a cell for every input after the first."""
        return super().flops(*inputs) * (len(inputs) - 1)
