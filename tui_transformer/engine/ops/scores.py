"""Scores: how well every query fits every key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.engine.axis import Axes, Region, Shape, shape_of
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Working, product
from tui_transformer.engine.ops.base import Gradients, Op


@dataclass(frozen=True)
class Scores(Op):
    """Q Kᵀ in every head (Vaswani et al. 2017, §3.2.1). Inputs: Q (h × n × d_k), K (h × m × d_k). Result: h × n × m."""

    @property
    def formula(self) -> str:
        """The product of the paper."""
        return "Q Kᵀ"

    def axes(self, *inputs: Axes) -> Axes:
        """Heads × queries × keys."""
        (head, queries, _), (_, keys, _) = inputs
        return head, queries.named("query"), keys.named("key")

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """One product a head."""
        query, key = inputs
        out = backend.empty((*query.shape[:-1], key.shape[-2]), query.dtype)
        return backend.xp.matmul(query, key.swapaxes(-1, -2), out=out)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: S = Q Kᵀ."""
        query, key = inputs
        return backend.xp.matmul(gradient, key), backend.xp.matmul(gradient.swapaxes(-1, -2), query)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows of Q and the rows of K."""
        heads, rows, columns = region
        inner = range(inputs[0][-1])
        return (heads, rows, inner), (heads, columns, inner)

    def explain(self, index: Index, *sources: Source) -> Working:
        """Σ q k over the width of the head."""
        head, row, column = index
        query, key = sources
        total = product("Σ q · k", query.factor(head, row, None), key.factor(head, column, None))
        return Working((total,), total.total)

    def flops(self, *inputs: Axes) -> int:
        """Two a product term."""
        return 2 * super().flops(*inputs) * shape_of(inputs[0])[-1]
