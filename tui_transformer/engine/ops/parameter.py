"""Parameter: a step that is a weight, as Q, K and V are in the bare attention example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on


@dataclass(frozen=True)
class Parameter(Op):
    """The weight as it is, with a batch axis."""

    chain: ClassVar[tuple[str, ...]] = ("∂y",)

    @property
    def formula(self) -> str:
        """Where the value comes from."""
        return "given"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the weight."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The weight with a batch of one."""
        return inputs[0][None]

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = w."""
        return (gradient.sum(axis=0),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The weight's cell."""
        cell = sources[0].operand(*index)
        return Working((Value("given", cell.value, cell),), cell.value)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradient of the step."""
        return passed_on(gradient.operand(*index))
