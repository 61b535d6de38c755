"""Given: a value that comes from outside, such as the token IDs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op


@dataclass(frozen=True)
class Given(Op):
    """The input as it is."""

    integer: ClassVar[bool] = True
    signed: ClassVar[bool] = False

    @property
    def formula(self) -> str:
        """Where the value comes from."""
        return "ID of each token in the vocabulary"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the input."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The input itself."""
        return inputs[0]

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """None: token IDs have no gradient."""
        return (None,)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The ID itself."""
        value = sources[0].cell(*index)
        return Working((Value("id", value, note="from the tokenizer"),), value)
