"""Unembed: the output head that shares its weight with the embedding table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape, shape_of
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Item, Source, Value, Working, added, product
from tui_transformer.engine.ops.base import Gradients, Op, flat, plus_bias, single, times


@dataclass(frozen=True)
class Unembed(Op):
    """x Eᵀ (+ b): a token's logit is the product of x with the token's embedding row (Press & Wolf 2017).

    Inputs: x (n × d), E (v × d) and, where there is one, b (v). Result: n × v. T5 scales x by d^(−1/2) first.
    """

    undone_from: ClassVar[tuple[int, ...]] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = ("∂y E · scale", "∂yᵀ x · scale", "Σ ∂y over the rows")
    scale: float = 1.0

    @property
    def formula(self) -> str:
        """The product with the transposed table."""
        return "x Eᵀ" if self.scale == 1.0 else f"x Eᵀ · {self.scale:.6g}"

    def axes(self, *inputs: Axes) -> Axes:
        """Tokens × vocabulary."""
        return *inputs[0][:-1], inputs[1][0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """One two-dimensional product for the whole batch."""
        x, table = inputs[:2]
        result = times(backend, x, table.T)
        if self.scale != 1.0:
            result *= self.scale
        for bias in inputs[2:]:
            result += bias
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x Eᵀ + b."""
        x, table = inputs[:2]
        rows = flat(gradient)
        toward_bias = (rows.sum(axis=0),) if len(inputs) > 2 else ()
        rows = rows if self.scale == 1.0 else rows * self.scale
        toward_x = backend.xp.matmul(rows, table, out=backend.like(flat(x))).reshape(x.shape)
        return toward_x, backend.xp.matmul(rows.T, flat(x)), *toward_bias

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """Rows of x, rows of the table and cells of the bias for the columns."""
        rows, columns = region
        inner = range(inputs[1][1])
        return (rows, inner), (columns, inner), *((columns,) for _ in inputs[2:])

    def explain(self, index: Index, *sources: Source) -> Working:
        """Σ x E, then the bias."""
        row, column = index
        x, table = sources[:2]
        total = product("Σ x E", x.factor(row, None), table.factor(column, None))
        if self.scale == 1.0:
            return plus_bias(total, column, sources[2:])
        biases = [bias.operand(column) for bias in sources[2:]]
        items: list[Item] = [total, Value("· scale", self.scale, note="d_model^(−1/2)")]
        items += [Value("+ b", bias.value, bias) for bias in biases]
        return Working(tuple(items), total.total * self.scale + sum(bias.value for bias in biases))

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Σ ∂y E toward x, Σ ∂y x toward the table, both scaled; Σ ∂y toward the bias."""
        x, table = sources[:2]
        if toward == 2:
            return single(added("Σ ∂y over the rows", gradient.factor(None, *index)))
        if toward == 0:
            total = product("Σ ∂y E", gradient.factor(index[0], None), table.factor(None, index[1]))
        else:
            total = product("Σ ∂y x", gradient.factor(None, index[0]), x.factor(None, index[1]))
        if self.scale == 1.0:
            return single(total)
        return Working((total, Value("· scale", self.scale, note="d_model^(−1/2)")), total.total * self.scale)

    def flops(self, *inputs: Axes) -> int:
        """Two a product term, one a scale, one a bias."""
        terms = 2 * shape_of(inputs[1])[1] + (self.scale != 1.0) + len(inputs) - 2
        return super().flops(*inputs) * terms
