"""Context: the values, weighted by attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.engine.axis import Axes, Region, Shape, shape_of
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Working, product
from tui_transformer.engine.ops.base import Gradients, Op


@dataclass(frozen=True)
class Context(Op):
    """weights · V in every head. Inputs: weights (h × n × m), V (h × m × d_k). Result: h × n × d_k."""

    @property
    def formula(self) -> str:
        """The product of the paper."""
        return "weights · V"

    def axes(self, *inputs: Axes) -> Axes:
        """Heads × tokens × width of a head."""
        (head, queries, _), (_, _, width) = inputs
        return head, queries.named("token"), width

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Written with the heads of a token side by side in memory, so that joining them copies nothing."""
        weights, value = inputs
        batch, heads, rows, _ = weights.shape
        merged = backend.empty((batch, rows, heads, value.shape[-1]), weights.dtype)
        result = merged.swapaxes(1, 2)
        backend.xp.matmul(weights, value, out=result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: C = A V."""
        weights, value = inputs
        matmul = backend.xp.matmul
        return matmul(gradient, value.swapaxes(-1, -2)), matmul(weights.swapaxes(-1, -2), gradient)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows of the weights, and all rows of V."""
        heads, rows, columns = region
        keys = range(inputs[0][-1])
        return (heads, rows, keys), (heads, keys, columns)

    def explain(self, index: Index, *sources: Source) -> Working:
        """Σ weight · value over the keys."""
        head, row, column = index
        weights, value = sources
        total = product("Σ weight · v", weights.factor(head, row, None), value.factor(head, None, column))
        return Working((total,), total.total)

    def flops(self, *inputs: Axes) -> int:
        """Two a product term."""
        return 2 * super().flops(*inputs) * shape_of(inputs[0])[-1]
