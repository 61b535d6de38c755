"""Linear: a matrix product with a weight, and a bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape, shape_of
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Index, Source, Working, added, product
from tui_transformer.engine.ops.base import Gradients, Op, flat, plus_bias, single, times


@dataclass(frozen=True)
class Linear(Op):
    """x W (+ b). Inputs: x (n × a, or a), W (a × b) and, where there is one, b (b). Result: n × b, or b."""

    undone_from: ClassVar[tuple[int, ...]] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = ("∂y Wᵀ", "xᵀ ∂y", "Σ ∂y over the rows")
    expression: str = "x W"

    @property
    def formula(self) -> str:
        """The product in the paper's letters."""
        return self.expression

    def axes(self, *inputs: Axes) -> Axes:
        """Rows of x × columns of W."""
        return *inputs[0][:-1], inputs[1][-1]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """One two-dimensional product for the whole batch."""
        x, weight = inputs[:2]
        result = times(backend, x, weight)
        for bias in inputs[2:]:
            result += bias
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x W + b."""
        x, weight = inputs[:2]
        rows = flat(gradient)
        toward_x = backend.xp.matmul(rows, weight.T, out=backend.like(flat(x))).reshape(x.shape)
        toward_bias = (rows.sum(axis=0),) if len(inputs) > 2 else ()
        return toward_x, backend.xp.matmul(flat(x).T, rows), *toward_bias

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """Rows of x, columns of W and of the bias."""
        *rows, columns = region
        inner = range(inputs[1][0])
        return (*rows, inner), (inner, columns), *((columns,) for _ in inputs[2:])

    def explain(self, index: Index, *sources: Source) -> Working:
        """Σ x W, then the bias."""
        *row, column = index
        x, weight = sources[:2]
        total = product(f"Σ {self.expression}", x.factor(*row, None), weight.factor(None, column))
        return plus_bias(total, column, sources[2:])

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Σ ∂y W toward x, Σ x ∂y toward W, Σ ∂y toward the bias."""
        x, weight = sources[:2]
        if toward == 0:
            return single(product("Σ ∂y W", gradient.factor(*index[:-1], None), weight.factor(index[-1], None)))
        if toward == 1:
            return single(product("Σ x ∂y", _column(x, index[0]), _column(gradient, index[1])))
        return single(added("Σ ∂y over the rows", _column(gradient, *index)))

    def flops(self, *inputs: Axes) -> int:
        """Two a product term, one a bias."""
        cells = super().flops(*inputs)
        return cells * (2 * shape_of(inputs[1])[0] + len(inputs) - 2)


def _column(source: Source, column: int) -> Factor:
    """A column of a matrix; of a vector its one cell."""
    return source.terms(column) if len(source.shape) == 1 else source.factor(None, column)
