"""Norms: every row to a size of its own, by its mean and variance or its root mean square."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Floats, Index, Item, Source, Sum, Value, Working, added
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops.base import Gradients, Op, by_rows, flat, single
from tui_transformer.records import dataclass, replace


@dataclass(frozen=True)
class Norm(Op):
    """Rows of the first input, normalised and multiplied by γ, and what else is as wide as a row.

    Class attributes:
        over: The axes of what is normalised together, from the end.
        mean_square, divisor: What a row is divided by, and one of its terms; its symbol, and how it is made.
        normal_text, short_text: x̂, written out, and with the divisor's own name.
        along_text: A term of the mean of ∂y γ x̂.
    """

    whole_rows = True
    overwrites = True
    over: ClassVar[tuple[int, ...]] = (-1,)
    mean_square: ClassVar[tuple[str, str]]
    divisor: ClassVar[tuple[str, str]]
    normal_text: ClassVar[str]
    short_text: ClassVar[str]
    along_text: ClassVar[str] = "∂y γ x̂ ÷ d"
    epsilon: float

    @property
    @abstractmethod
    def centred(self) -> bool:
        """Whether the mean is taken off first."""

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, gamma, *betas = inputs
        result = backend.like(x) if out is None else out
        if backend.kernels is not None:
            return backend.kernels.norm(x, inputs[1:], self.epsilon, result, centred=self.centred)

        def scale(rows: Array, target: Array) -> None:
            self.normalise(backend, rows, target)
            target *= gamma
            for beta in betas:
                target += beta

        by_rows(backend, scale, x, result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ (+ β) with x̂ = (x − μ) ÷ √(σ² + ε), μ = 0 where the mean is not taken off."""
        xp, (x, gamma) = backend.xp, inputs[:2]
        normal = backend.like(x)
        size = self.normalise(backend, x, normal)
        toward_gamma = xp.einsum("ni,ni->i", flat(gradient), flat(normal))
        toward_x = xp.multiply(gradient, gamma, out=backend.like(gradient))
        normal *= xp.einsum("...i,...i->...", toward_x, normal)[..., None] / x.shape[-1]
        if self.centred:
            toward_x -= toward_x.mean(axis=-1, keepdims=True)
        toward_x -= normal
        toward_x /= size
        toward_beta = (flat(gradient).sum(axis=0),) if len(inputs) > 2 else ()
        return toward_x, toward_gamma, *toward_beta

    def normalise(self, backend: Backend, x: Array, out: Array) -> Array:
        """Write x̂ into `out`, and give what every row was divided by."""
        if self.centred:
            mean = backend.xp.einsum("...i->...", x)[..., None]
            mean /= x.shape[-1]
            x = backend.xp.subtract(x, mean, out=out)
        square = backend.xp.einsum("...i,...i->...", x, x)[..., None]
        square /= x.shape[-1]
        square += self.epsilon
        size = backend.xp.sqrt(square, out=square)
        backend.xp.divide(x, size, out=out)
        return size

    def row(self, index: Index) -> tuple[int | None, ...]:
        """The cells that are normalised together with a cell."""
        return tuple(None if axis - len(index) in self.over else i for axis, i in enumerate(index))

    def place(self, index: Index, shape: Shape) -> int:
        """Where a cell is among those, and γ of it among all."""
        return int(np.ravel_multi_index([index[axis] for axis in self.over], [shape[axis] for axis in self.over]))

    def explain(self, index: Index, *inputs: Source) -> Working:
        x, gammas, *betas = inputs
        row, cell, gamma = x.factor(*self.row(index)), x.operand(*index), gammas.operand(self.place(index, x.shape))
        shifts = [beta.operand(index[-1]) for beta in betas]
        mean = float(row.values.mean()) if self.centred else 0.0
        title, term = self.mean_square
        square = Sum(title, (row,), (row.values - mean) ** 2 / len(row.values), term)
        normal = (cell.value - mean) / math.sqrt(square.total + self.epsilon)
        items: tuple[Item, ...] = (
            cell.called("x"),
            *((Value("μ", mean, note="mean of the row"),) if self.centred else ()),
            square,
            Value("ε", self.epsilon),
            Value(self.normal_text, normal),
            gamma.called("· γ"),
            *(beta.called("+ β") for beta in shifts),
        )
        left = f"{spoken(normal)} · {bracketed(gamma.value)}"
        left += "".join(f" + {bracketed(beta.value)}" for beta in shifts)
        return Working(items, normal * gamma.value + sum(beta.value for beta in shifts), left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, gammas = inputs[:2]
        if toward:
            places = np.unravel_index(index[0], [x.shape[axis] for axis in self.over])
            at = dict(zip(self.over, map(int, places), strict=True))
            column = tuple(at.get(axis) for axis in range(-len(x.shape), 0))  # the cells that γ multiplies
            cells = gradient.factor(*column)
            if toward == 2:
                return single(added("Σ ∂y over the rows", cells))
            return self.toward_gamma(x.read(whole(x.shape)), column, cells)
        normal, sizes = self._normal(x.factor(*self.row(index)).values, (-1,))
        row, gamma, size = gradient.factor(*self.row(index)), gammas.factor(None), sizes.item()
        mean = Sum("mean ∂y γ", (row, gamma), row.values * gamma.values / len(normal), "∂y γ ÷ d")
        along = Sum("mean ∂y γ x̂", (row, gamma), mean.contributions * normal, self.along_text)
        place = self.place(index, x.shape)
        cell, weight, own = row.operand(place), gamma.operand(place), float(normal[place])
        items = (
            cell.called("∂y"),
            weight.called("· γ"),
            *((mean,) if self.centred else ()),
            along,
            Value("x̂", own, x.operand(*index), self.short_text),
            Value(self.divisor[0], size, note=self.divisor[1]),
        )
        centre = mean.total if self.centred else 0.0
        return Working(items, (cell.value * weight.value - centre - own * along.total) / size)

    def toward_gamma(self, x: Floats, column: tuple[int | None, ...], gradient: Factor) -> Working:
        """Σ ∂y x̂ over the rows: the gradient of γ of a column, whose cells in x have None where an index is any."""
        normal, _ = self._normal(x, self.over)
        cells = normal[tuple(slice(None) if i is None else i for i in column)].reshape(-1)
        return single(Sum("Σ ∂y x̂ over the rows", (gradient,), gradient.values * cells, "∂y x̂"))

    def _normal(self, x: Floats, over: tuple[int, ...]) -> tuple[Floats, Floats]:
        """x̂, and what it was divided by, in float64."""
        centred = x - x.mean(axis=over, keepdims=True) if self.centred else x
        size = np.sqrt((centred**2).mean(axis=over, keepdims=True) + self.epsilon)
        return centred / size, size


@dataclass(frozen=True)
class LayerNorm(Norm):
    """(x − μ) ÷ √(σ² + ε) · γ (+ β) over the last axis (Ba et al. 2016).

    Inputs: x (… × d), γ (d) and, where there is one, β (d). σ² is the mean of squares (not the sample variance).
    """

    definition = "(x − μ) ÷ √(σ² + ε) · γ + β"
    cost = 7
    undone_from: ClassVar[tuple[int, ...] | None] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = (
        "(∂y γ − mean(∂y γ) − x̂ · mean(∂y γ x̂)) ÷ σ",
        "Σ ∂y x̂ over the rows",
        "Σ ∂y over the rows",
    )
    centred = True
    mean_square = ("σ² = Σ (x − μ)² ÷ d", "(x − μ)² ÷ d")
    divisor = ("÷ σ", "√(σ² + ε)")
    normal_text, short_text = "(x − μ) ÷ √(σ² + ε)", "(x − μ) ÷ σ"
    epsilon: float = 1e-5


@dataclass(frozen=True)
class LayerNormByHead(LayerNorm):
    """(x − μ) ÷ √(σ² + ε) · γ of the head, over the columns of each head (Dehghani et al. 2023, §2).

    Inputs: x (h × n × d_k), then h times γ (d_k), head by head.
    """

    definition = "(x − μ) ÷ √(σ² + ε) · γ of the head"
    chain = (LayerNorm.chain[0], "Σ ∂y x̂ over the rows of the head")
    undone_from = None
    whole_axes = (0,)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, *gammas = inputs
        result = backend.like(x) if out is None else out
        for head, gamma in enumerate(gammas):
            result[:, head] = LayerNorm.forward(self, backend, backend.xp.ascontiguousarray(x[:, head]), gamma)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ in every head."""
        x, *gammas = inputs
        toward_x, toward_gammas = backend.like(x), []
        for head, gamma in enumerate(gammas):
            here, of_gamma = LayerNorm.backward(
                self, backend, gradient[:, head], output[:, head], backend.xp.ascontiguousarray(x[:, head]), gamma
            )
            toward_x[:, head] = here
            toward_gammas.append(of_gamma)
        return toward_x, *toward_gammas

    def explain(self, index: Index, *inputs: Source) -> Working:
        return super().explain(index, inputs[0], inputs[1 + index[0]])

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, *gammas = inputs
        if toward == 0:
            return super().explain_backward(index, 0, gradient, output, x, gammas[index[0]])
        rows = x.read((range(toward - 1, toward), *whole(x.shape)[1:]))
        return self.toward_gamma(rows, (0, None, index[0]), gradient.factor(toward - 1, None, index[0]))


@dataclass(frozen=True)
class RmsNorm(Norm):
    """x ÷ √(mean x² + ε) · γ over the last axis (Zhang & Sennrich 2019). Inputs: x (… × d), γ (d)."""

    definition = "x ÷ √(mean x² + ε) · γ"
    cost = 4
    chain = ("(∂y γ − x̂ · mean(∂y γ x̂)) ÷ √(mean x² + ε)", "Σ ∂y x̂ over the rows")
    centred = False
    mean_square = ("mean x²", "x² ÷ d")
    divisor = ("÷", "√(mean x² + ε)")
    normal_text = short_text = "x ÷ √(mean x² + ε)"
    epsilon: float = 1e-6


@dataclass(frozen=True)
class RmsNormOfHeads(RmsNorm):
    """x ÷ √(mean x² + ε) · γ over all heads of a token side by side (OLMo Team 2024, §3.2).

    Inputs: x (h × n × d_k), γ (h·d_k).
    """

    definition = "x ÷ √(mean x² of all heads + ε) · γ"
    overwrites = False
    whole_axes = (0,)
    over = (-3, -1)
    mean_square = ("mean x² of all heads", "x² ÷ (h · d_k)")
    along_text = "∂y γ x̂ ÷ (h · d_k)"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, gamma = inputs
        return _by_head(super().forward(backend, _side_by_side(x), gamma), x)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ with x̂ = x / √(mean x² + ε), the mean over heads and columns."""
        x, gamma = inputs
        toward_x, toward_gamma = super().backward(backend, _side_by_side(gradient), output, _side_by_side(x), gamma)
        return _by_head(toward_x, x), toward_gamma


def _side_by_side(heads: Array) -> Array:
    """B × h × n × d_k → B × n × h·d_k: a view where the heads already lie so in memory."""
    batch, count, rows, width = heads.shape
    return heads.swapaxes(1, 2).reshape(batch, rows, count * width)


def _by_head(rows: Array, heads: Array) -> Array:
    """B × n × h·d_k → B × h × n × d_k, as those heads are."""
    return rows.reshape(heads.swapaxes(1, 2).shape).swapaxes(1, 2)


@dataclass(frozen=True)
class NormOfSum(Op):
    """Layer norm of the sum of the first `parts` inputs, as BERT's embedding has it (Devlin et al. 2018).

    Inputs: the parts (n × d each), γ (d), β (d).
    """

    definition = "(x − μ) ÷ √(σ² + ε) · γ + β of the sum"
    whole_rows = True
    chain = ("layer norm's, the same for every part",)
    epsilon: float
    parts: int

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        total = self._sum(backend, *inputs)
        return LayerNorm(self.epsilon).forward(backend, total, *inputs[self.parts :], out=total)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = norm(a + b + …); each addend gets the whole gradient of the sum."""
        total = self._sum(backend, *inputs)
        norm, weights = LayerNorm(self.epsilon), inputs[self.parts :]
        toward_sum, *toward_weights = norm.backward(backend, gradient, output, total, *weights)
        return *(toward_sum for _ in range(self.parts)), *toward_weights

    def _sum(self, backend: Backend, *inputs: Array) -> Array:
        total = backend.like(inputs[0])
        total[...] = inputs[0]
        for part in inputs[1 : self.parts]:
            total += part
        return total

    def explain(self, index: Index, *inputs: Source) -> Working:
        operands = [source.operand(*index) for source in inputs[: self.parts]]
        row = np.sum([source.line(index[0], None) for source in inputs[: self.parts]], axis=0)
        gamma, beta = (source.operand(index[1]) for source in inputs[self.parts :])
        mean, variance = float(row.mean()), float(row.var())
        normal = (row[index[1]] - mean) / math.sqrt(variance + self.epsilon)
        items: list[Item] = [part.called("+" if i else "") for i, part in enumerate(operands)]
        items += [
            Value("sum", float(row[index[1]])),
            Value("μ", mean, note="mean of the summed row"),
            Value("σ²", variance, note="variance of the summed row"),
            Value("ε", self.epsilon),
            Value("(sum − μ) ÷ √(σ² + ε)", float(normal)),
            gamma.called("· γ"),
            beta.called("+ β"),
        ]
        left = f"{spoken(float(normal))} · {bracketed(gamma.value)} + {bracketed(beta.value)}"
        return Working(tuple(items), float(normal * gamma.value + beta.value), left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        parts = inputs[: self.parts]
        total = Source("sum", parts[0].shape, lambda region: np.sum([part.read(region) for part in parts], axis=0))
        inner = max(toward - self.parts + 1, 0)
        norm, weights = LayerNorm(self.epsilon), inputs[self.parts :]
        working = norm.explain_backward(index, inner, gradient, output, total, *weights)
        items = list(working.items)
        for i, item in enumerate(items):
            if isinstance(item, Value) and item.source is not None and item.source.name == total.name:
                items[i] = replace(item, source=None)
        return Working(tuple(items), working.result)

    def flops(self, *inputs: Axes) -> int:
        return super().flops(*inputs) * (self.parts - 1 + 7)
