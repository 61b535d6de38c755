"""Scores: how well every query fits every key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape, shape_of
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Working, product
from tui_transformer.engine.ops.base import Gradients, Op, single
from tui_transformer.engine.ops.grouped import grouped, key_heads, side_by_side, ungrouped, whole_groups


@dataclass(frozen=True)
class Scores(Op):
    """Q Kᵀ in every head (Vaswani et al. 2017, §3.2.1). Inputs: Q (h × n × d_k), K (g × m × d_k). Result: h × n × m.

    `share` query heads read one key head; 1 unless keys are grouped.
    """

    undone_from: ClassVar[tuple[int, ...]] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = ("∂y K", "∂yᵀ Q")
    share: int = 1

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
        if query.shape[1] == key.shape[1]:
            return backend.xp.matmul(query, key.swapaxes(-1, -2), out=out)
        groups = key.shape[1]
        backend.xp.matmul(grouped(query, groups), key[:, :, None].swapaxes(-1, -2), out=grouped(out, groups))
        return out

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: S = Q Kᵀ."""
        query, key = inputs
        matmul, groups = backend.xp.matmul, key.shape[1]
        if query.shape[1] == groups:
            toward_query = matmul(gradient, key, out=side_by_side(backend, query))
            return toward_query, matmul(gradient.swapaxes(-1, -2), query, out=side_by_side(backend, key))
        rows, queries = grouped(gradient, groups), grouped(query, groups)
        toward_key = matmul(rows.swapaxes(-1, -2), queries).sum(axis=2)
        return ungrouped(matmul(rows, key[:, :, None])), toward_key

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Heads that share a key head are computed together."""
        return whole_groups(region, self.share)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows of Q and the rows of K."""
        heads, rows, columns = region
        inner = range(inputs[0][-1])
        return (heads, rows, inner), (key_heads(heads, self.share), columns, inner)

    def explain(self, index: Index, *sources: Source) -> Working:
        """Σ q k over the width of the head."""
        head, row, column = index
        query, key = sources
        total = product("Σ q · k", query.factor(head, row, None), key.factor(head // self.share, column, None))
        return Working((total,), total.total)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Σ ∂y k over the keys toward Q; Σ ∂y q over the queries, of all heads that share the key head, toward K."""
        query, key = sources
        head, row, column = index
        if toward == 0:
            shared = key.factor(head // self.share, None, column)
            return single(product("Σ ∂y · k", gradient.factor(head, row, None), shared))
        heads = range(head * self.share, (head + 1) * self.share)
        return single(product("Σ ∂y · q", gradient.terms(heads, None, row), query.terms(heads, None, column)))

    def flops(self, *inputs: Axes) -> int:
        """Two a product term."""
        return 2 * super().flops(*inputs) * shape_of(inputs[0])[-1]
