"""Gate: one branch of a feed-forward layer times the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, passed_on
from tui_transformer.engine.ops.elementwise import Elementwise


@dataclass(frozen=True)
class Gate(Elementwise):
    """a · b, elementwise (Shazeer 2020). Inputs: the activated gate and the hidden values."""

    chain: ClassVar[tuple[str, ...]] = ("∂y · hidden", "∂y · f(gate)")

    @property
    def formula(self) -> str:
        """The product."""
        return "f(gate) · hidden"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """A · b."""
        return backend.xp.multiply(inputs[0], inputs[1], out=backend.like(inputs[0]) if out is None else out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = a · b."""
        return gradient * inputs[1], gradient * inputs[0]

    def explain(self, index: Index, *sources: Source) -> Working:
        """Both factors."""
        gate, hidden = (source.operand(*index) for source in sources)
        return Working(
            (Value("f(gate)", gate.value, gate), Value("· hidden", hidden.value, hidden)), gate.value * hidden.value
        )

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient times the other factor."""
        other, symbol = sources[1 - toward].operand(*index), ("· hidden", "· f(gate)")[toward]
        return passed_on(gradient.operand(*index), other.value, symbol, read=other)
