"""Products with a weight: linear layers, those whose result is split into heads, and the output head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Axis, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.compact import StoredMatrix
from tui_transformer.engine.explanation import Factor, Index, Item, Source, Sum, Value, Working, added, product
from tui_transformer.engine.ops.base import Along, Gradients, Op, flat, single
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class WeightProduct(Op):
    """x W (+ b). Inputs: x (n × a, or a), W (a × b) and, where there is one, b (b)."""

    undone_from = (0, 1)
    along: ClassVar[Along] = ((0, None), (None, -1), (-1,))
    chain = ("∂y Wᵀ", "xᵀ ∂y", "Σ ∂y over the rows")

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """One two-dimensional product for the whole batch; of a single row, without more ado."""
        x, weight, *biases = inputs
        if isinstance(weight, StoredMatrix):
            result = weight.product(backend, flat(x)).reshape(*x.shape[:-1], weight.shape[1])
        elif x.size == x.shape[-1]:
            result = backend.xp.matmul(x, weight)
        else:
            rows = flat(x)
            result = backend.xp.matmul(rows, weight, out=backend.empty((rows.shape[0], weight.shape[1]), x.dtype))
            result = result.reshape(*x.shape[:-1], weight.shape[1])
        for bias in biases:
            result += bias
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x W + b; there is no gradient of a matrix that is too large to be held."""
        x, weight, *biases = inputs
        rows = flat(gradient)
        if isinstance(weight, StoredMatrix):
            toward_weight = None if weight.panel is None else backend.xp.matmul(flat(x).T, rows)
            toward_x = weight.product_back(backend, rows).reshape(x.shape)
            return toward_x, toward_weight, *(rows.sum(axis=0) for _ in biases)
        toward_x = backend.xp.matmul(rows, weight.T, out=backend.like(flat(x))).reshape(x.shape)
        return toward_x, backend.xp.matmul(flat(x).T, rows), *(rows.sum(axis=0) for _ in biases)

    def flops(self, *inputs: Axes) -> int:
        """Two a product term, one a bias."""
        return super().flops(*inputs) * (2 * inputs[0][-1].size + len(inputs) - 2)


@dataclass(frozen=True)
class Linear(WeightProduct):
    """x W (+ b). Result: n × b, or b."""

    formula: str = "x W"

    def axes(self, *inputs: Axes) -> Axes:
        return *inputs[0][:-1], inputs[1][-1]

    def explain(self, index: Index, *inputs: Source) -> Working:
        *row, column = index
        x, weight, *biases = inputs
        total = product(f"Σ {self.formula}", x.factor(*row, None), weight.factor(None, column))
        return _plus(total, biases, column)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, weight = inputs[:2]
        if toward == 0:
            return single(product("Σ ∂y W", gradient.factor(*index[:-1], None), weight.factor(index[-1], None)))
        return _toward_weight(x, index, _column(gradient, index[-1]))


@dataclass(frozen=True)
class Project(WeightProduct):
    """x W (+ b), columns dealt to heads of `width` each (Vaswani et al. 2017, §3.2.2).

    Inputs: x (n × d), W (d × h·d_k), bias (h·d_k). Result: h × n × d_k, a view of the product: nothing is copied.
    """

    whole_axes = (2,)  # so that the columns of heads are side by side in W
    width: int
    letter: str

    @property
    def formula(self) -> str:
        return f"X W_{self.letter}"

    def axes(self, *inputs: Axes) -> Axes:
        (tokens, _), (_, out) = inputs[:2]
        return Axis("head", out.size // self.width), tokens, Axis("head width", self.width)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return self.dealt(super().forward(backend, *inputs))

    def dealt(self, columns: Array) -> Array:
        """The result, from x W + b."""
        return columns.reshape(*columns.shape[:-1], -1, self.width).swapaxes(-2, -3)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = split(x W + b)."""
        rows = gradient.swapaxes(-2, -3).reshape(-1, inputs[1].shape[1])
        return super().backward(backend, rows, output, *inputs)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        heads, rows, _ = region
        return super().reads((rows, range(heads.start * self.width, heads.stop * self.width)), inputs)

    def explain(self, index: Index, *inputs: Source) -> Working:
        head, row, offset = index
        column = head * self.width + offset
        x, weight, *biases = inputs
        total = product(f"Σ {self.formula}", x.factor(row, None), weight.factor(None, column))
        return _plus(total, biases, column)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, weight = inputs[:2]
        if toward == 0:
            return single(product("Σ ∂y W", gradient.factor(None, index[0], None), weight.factor(index[1], None)))
        head, offset = divmod(index[-1], self.width)
        return _toward_weight(x, index, gradient.factor(head, None, offset))


@dataclass(frozen=True)
class Unembed(WeightProduct):
    """x Eᵀ (+ b): a token's logit is the product of x with the token's embedding row (Press & Wolf 2017).

    Inputs: x (n × d), E (v × d) and, where there is one, b (v). Result: n × v. T5 scales x by d^(−1/2) first.
    """

    along = ((0, None), (1, None), (1,))
    chain = ("∂y E · scale", "∂yᵀ x · scale", "Σ ∂y over the rows")
    scale: float = 1.0

    @property
    def formula(self) -> str:
        return "x Eᵀ" if self.scale == 1.0 else f"x Eᵀ · {self.scale:.6g}"

    def axes(self, *inputs: Axes) -> Axes:
        return *inputs[0][:-1], inputs[1][0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, table, *biases = inputs
        result = super().forward(backend, x, table.T)
        if self.scale != 1.0:
            result *= self.scale
        for bias in biases:
            result += bias
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x Eᵀ + b."""
        x, table, *biases = inputs
        rows = flat(gradient)
        toward_biases = [rows.sum(axis=0) for _ in biases]
        rows = rows if self.scale == 1.0 else rows * self.scale
        toward_x = backend.xp.matmul(rows, table, out=backend.like(flat(x))).reshape(x.shape)
        return toward_x, backend.xp.matmul(rows.T, flat(x)), *toward_biases

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, column = index
        x, table, *biases = inputs
        total = product("Σ x E", x.factor(row, None), table.factor(column, None))
        return _plus(total, biases, column, self.scale)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, table = inputs[:2]
        if toward == 2:
            return single(added("Σ ∂y over the rows", gradient.factor(None, index[0])))
        if toward == 0:
            total = product("Σ ∂y E", gradient.factor(index[0], None), table.factor(None, index[1]))
        else:
            total = product("Σ ∂y x", gradient.factor(None, index[0]), x.factor(None, index[1]))
        return _plus(total, scale=self.scale)

    def flops(self, *inputs: Axes) -> int:
        return super().flops(*inputs) + (self.scale != 1.0) * Op.flops(self, *inputs)


def _plus(total: Sum, biases: Sequence[Source] = (), column: int = 0, scale: float = 1.0) -> Working:
    """A sum, times a scale, and the bias of its column where there is one."""
    items: list[Item] = [total]
    if scale != 1.0:
        items.append(Value("· scale", scale, note="d_model^(−1/2)"))
    shifts = [bias.operand(column) for bias in biases]
    items += [shift.called("+ b") for shift in shifts]
    return Working(tuple(items), total.total * scale + sum(shift.value for shift in shifts))


def _toward_weight(x: Source, index: Index, column: Factor) -> Working:
    """From a column of the gradient: Σ x ∂y toward a cell of W, Σ ∂y toward a cell of the bias."""
    if len(index) == 2:
        return single(product("Σ x ∂y", _column(x, index[0]), column))
    return single(added("Σ ∂y over the rows", column))


def _column(source: Source, column: int) -> Factor:
    return source.factor(column) if len(source.shape) == 1 else source.factor(None, column)
