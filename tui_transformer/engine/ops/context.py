"""Context: the values, weighted by attention."""

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
class Context(Op):
    """weights · V in every head. Inputs: weights (h × n × m), V (g × m × d_k). Result: h × n × d_k.

    `share` heads read one value head; 1 unless values are grouped.
    """

    undone_from: ClassVar[tuple[int, ...]] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = ("∂y Vᵀ", "weightsᵀ ∂y")
    share: int = 1

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
        if heads == value.shape[1]:
            backend.xp.matmul(weights, value, out=result)
        else:
            result[...] = ungrouped(backend.xp.matmul(grouped(weights, value.shape[1]), value[:, :, None]))
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: C = A V."""
        weights, value = inputs
        matmul, groups = backend.xp.matmul, value.shape[1]
        if weights.shape[1] == groups:
            toward_weights = matmul(gradient, value.swapaxes(-1, -2), out=backend.like(weights))
            return toward_weights, matmul(weights.swapaxes(-1, -2), gradient, out=side_by_side(backend, value))
        rows, shares = grouped(gradient, groups), grouped(weights, groups)
        toward_value = matmul(shares.swapaxes(-1, -2), rows).sum(axis=2)
        return ungrouped(matmul(rows, value[:, :, None].swapaxes(-1, -2))), toward_value

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Heads that share a key head are computed together."""
        return whole_groups(region, self.share)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows of the weights, and all rows of V."""
        heads, rows, columns = region
        keys = range(inputs[0][-1])
        return (heads, rows, keys), (key_heads(heads, self.share), keys, columns)

    def explain(self, index: Index, *sources: Source) -> Working:
        """Σ weight · value over the keys."""
        head, row, column = index
        weights, value = sources
        total = product("Σ weight · v", weights.factor(head, row, None), value.factor(head // self.share, None, column))
        return Working((total,), total.total)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Σ ∂y v over the width toward the weights; Σ weight ∂y over the queries of all heads that share V toward V."""
        weights, value = sources
        head, row, column = index
        if toward == 0:
            shared = value.factor(head // self.share, column, None)
            return single(product("Σ ∂y · v", gradient.factor(head, row, None), shared))
        heads = range(head * self.share, (head + 1) * self.share)
        return single(product("Σ weight · ∂y", weights.terms(heads, None, row), gradient.terms(heads, None, column)))

    def flops(self, *inputs: Axes) -> int:
        """Two a product term."""
        return 2 * super().flops(*inputs) * shape_of(inputs[0])[-1]
