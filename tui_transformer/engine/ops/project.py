"""Project: a linear layer whose result is split into heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Axis, Region, Shape, shape_of
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Working, added, product
from tui_transformer.engine.ops.base import Gradients, Op, flat, plus_bias, single, times


@dataclass(frozen=True)
class Project(Op):
    """x W (+ b), columns dealt to heads of `width` each (Vaswani et al. 2017, §3.2.2).

    Inputs: x (n × d), W (d × h·d_k), bias (h·d_k). Result: h × n × d_k, a view of the product: nothing is copied.
    """

    undone_from: ClassVar[tuple[int, ...]] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = ("∂y Wᵀ", "xᵀ ∂y", "Σ ∂y over the rows")
    width: int
    letter: str

    @property
    def formula(self) -> str:
        """The product in the paper's letters."""
        return f"X W_{self.letter}"

    def axes(self, *inputs: Axes) -> Axes:
        """Heads × tokens × width of a head."""
        (tokens, _), (_, out) = inputs[:2]
        return Axis("head", out.size // self.width), tokens, Axis("head width", self.width)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """B × n × d → B × h × n × d_k."""
        x, weight = inputs[:2]
        result = times(backend, x, weight)
        for bias in inputs[2:]:
            result += bias
        return result.reshape(*x.shape[:-1], -1, self.width).swapaxes(-2, -3)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = split(x W + b)."""
        x, weight = inputs[:2]
        rows = gradient.swapaxes(-2, -3).reshape(-1, weight.shape[1])
        toward_x = backend.xp.matmul(rows, weight.T, out=backend.like(flat(x))).reshape(x.shape)
        toward_bias = (rows.sum(axis=0),) if len(inputs) > 2 else ()
        return toward_x, backend.xp.matmul(flat(x).T, rows), *toward_bias

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Whole heads, so that their columns are side by side in W."""
        return region[0], region[1], range(self.width)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """Rows of x; the heads' columns of W and of the bias."""
        heads, rows, _ = region
        columns = range(heads.start * self.width, heads.stop * self.width)
        inner = range(inputs[1][0])
        return (rows, inner), (inner, columns), *((columns,) for _ in inputs[2:])

    def explain(self, index: Index, *sources: Source) -> Working:
        """Σ x W, then the bias."""
        head, row, offset = index
        column = head * self.width + offset
        x, weight = sources[:2]
        total = product(f"Σ X W_{self.letter}", x.factor(row, None), weight.factor(None, column))
        return plus_bias(total, column, sources[2:])

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Σ ∂y W toward x, over all heads; Σ x ∂y toward W; Σ ∂y toward the bias."""
        x, weight = sources[:2]
        if toward == 0:
            return single(product("Σ ∂y W", gradient.terms(None, index[0], None), weight.factor(index[1], None)))
        head, offset = divmod(index[-1], self.width)
        column = gradient.factor(head, None, offset)
        if toward == 1:
            return single(product("Σ x ∂y", x.factor(None, index[0]), column))
        return single(added("Σ ∂y over the rows", column))

    def flops(self, *inputs: Axes) -> int:
        """Two a product term, one a bias."""
        return super().flops(*inputs) * (2 * shape_of(inputs[1])[0] + len(inputs) - 2)
