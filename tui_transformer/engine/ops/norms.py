"""Norms: every row to a size of its own, by its mean and variance, its root mean square, or its length."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Floats, Index, Item, Source, Sum, Value, Working, added
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops.base import Gradients, Op, by_rows, flat, single


@dataclass(frozen=True)
class Norm(Op):
    """Rows of the first input, normalised and multiplied by γ, and what else is as wide as a row."""

    whole_rows = True
    overwrites = True

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return region, *((region[-1],) for _ in inputs[1:])

    @abstractmethod
    def normal(self, x: Floats) -> tuple[Floats, Floats]:
        """Rows as they are before γ, and what each was divided by (with an axis of 1), in float64."""

    def toward_gamma(self, x: Floats, column: tuple[int | None, ...], gradient: Factor) -> Working:
        """Σ ∂y x̂ over the rows: the gradient of γ of a column, whose cells in x have None where an index is any."""
        normal, _ = self.normal(x)
        cells = normal[tuple(slice(None) if i is None else i for i in column)].reshape(-1)
        return single(Sum("Σ ∂y x̂ over the rows", (gradient,), gradient.values * cells, "∂y x̂"))


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
    epsilon: float = 1e-5

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, gamma, *betas = inputs
        result = backend.like(x) if out is None else out

        def normalise(rows: Array, target: Array) -> None:
            target /= self._centred(backend, rows, target)
            target *= gamma
            for beta in betas:
                target += beta

        by_rows(backend, normalise, x, result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ + β with x̂ = (x − μ) / √(σ² + ε)."""
        xp, (x, gamma) = backend.xp, inputs[:2]
        normal = backend.like(x)
        deviation = self._centred(backend, x, normal)
        normal /= deviation
        toward_gamma = xp.einsum("ni,ni->i", flat(gradient), flat(normal))
        toward_x = xp.multiply(gradient, gamma, out=backend.like(gradient))
        mean = toward_x.mean(axis=-1, keepdims=True)
        normal *= xp.einsum("...i,...i->...", toward_x, normal)[..., None] / x.shape[-1]
        toward_x -= mean
        toward_x -= normal
        toward_x /= deviation
        toward_beta = (flat(gradient).sum(axis=0),) if len(inputs) > 2 else ()
        return toward_x, toward_gamma, *toward_beta

    def _centred(self, backend: Backend, x: Array, out: Array) -> Array:
        """Write x − μ into `out`, and give √(σ² + ε) of every row."""
        mean = backend.xp.einsum("...i->...", x)[..., None]
        mean /= x.shape[-1]
        backend.xp.subtract(x, mean, out=out)
        variance = backend.xp.einsum("...i,...i->...", out, out)[..., None]
        variance /= x.shape[-1]
        variance += self.epsilon
        return backend.xp.sqrt(variance, out=variance)

    def explain(self, index: Index, *inputs: Source) -> Working:
        x, gammas, *betas = inputs
        row = x.factor(*index[:-1], None)
        cell, gamma = x.operand(*index), gammas.operand(index[-1])
        shifts = [beta.operand(index[-1]) for beta in betas]
        mean = float(row.values.mean())
        variance = Sum("σ² = Σ (x − μ)² ÷ d", (row,), (row.values - mean) ** 2 / len(row.values), "(x − μ)² ÷ d")
        normal = (cell.value - mean) / math.sqrt(variance.total + self.epsilon)
        items: tuple[Item, ...] = (
            Value("x", cell.value, cell),
            Value("μ", mean, note="mean of the row"),
            variance,
            Value("ε", self.epsilon),
            Value("(x − μ) ÷ √(σ² + ε)", normal),
            Value("· γ", gamma.value, gamma),
            *(Value("+ β", beta.value, beta) for beta in shifts),
        )
        left = f"{spoken(normal)} · {bracketed(gamma.value)}" + "".join(
            f" + {bracketed(beta.value)}" for beta in shifts
        )
        return Working(items, normal * gamma.value + sum(beta.value for beta in shifts), left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, gammas = inputs[:2]
        column = (*(None for _ in x.shape[:-1]), *index)
        if toward == 2:
            return single(added("Σ ∂y over the rows", gradient.terms(*column)))
        if toward == 1:
            return self.toward_gamma(x.read(whole(x.shape)), column, gradient.terms(*column))
        normal, deviations = self.normal(x.line(*index[:-1], None))
        deviation = deviations.item()
        row, gamma = gradient.factor(*index[:-1], None), gammas.factor(None)
        mean = Sum("mean ∂y γ", (row, gamma), row.values * gamma.values / len(normal), "∂y γ ÷ d")
        along = Sum("mean ∂y γ x̂", (row, gamma), mean.contributions * normal, "∂y γ x̂ ÷ d")
        place = index[-1]
        cell, weight, own = row.operand(place), gamma.operand(place), float(normal[place])
        items = (
            Value("∂y", cell.value, cell),
            Value("· γ", weight.value, weight),
            mean,
            along,
            Value("x̂", own, x.operand(*index), "(x − μ) ÷ σ"),
            Value("÷ σ", deviation, note="√(σ² + ε)"),
        )
        return Working(items, (cell.value * weight.value - mean.total - own * along.total) / deviation)

    def normal(self, x: Floats) -> tuple[Floats, Floats]:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)
        return centred / deviation, deviation


@dataclass(frozen=True)
class RmsNorm(Norm):
    """x ÷ √(mean x² + ε) · γ over the last axis (Zhang & Sennrich 2019). Inputs: x (… × d), γ (d).

    Class attributes:
        mean_over: The axes that a mean is taken over, from the end.
        texts: The mean square, one of its terms, and one of the mean of ∂y γ x̂, written out.
    """

    definition = "x ÷ √(mean x² + ε) · γ"
    cost = 4
    chain = ("(∂y γ − x̂ · mean(∂y γ x̂)) ÷ √(mean x² + ε)", "Σ ∂y x̂ over the rows")
    mean_over: ClassVar[tuple[int, ...]] = (-1,)
    texts: ClassVar[tuple[str, str, str]] = ("mean x²", "x² ÷ d", "∂y γ x̂ ÷ d")
    epsilon: float = 1e-6

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        x, gamma = inputs
        result = backend.like(x) if out is None else out

        def scale(rows: Array, target: Array) -> None:
            backend.xp.divide(rows, self.size(backend, rows), out=target)
            target *= gamma

        by_rows(backend, scale, x, result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ with x̂ = x / √(mean x² + ε)."""
        x, gamma = inputs
        size = self.size(backend, x)
        normal, toward_normal = x / size, gradient * gamma
        along = (toward_normal * normal).mean(axis=self.mean_over, keepdims=True)
        return (toward_normal - normal * along) / size, flat(gradient * normal).sum(axis=0)

    def size(self, backend: Backend, x: Array) -> Array:
        """√(mean x² + ε) of every row."""
        squares = backend.xp.einsum("...i,...i->...", x, x)[..., None]
        return backend.xp.sqrt(squares / x.shape[-1] + self.epsilon)

    def normal(self, x: Floats) -> tuple[Floats, Floats]:
        size = np.sqrt((x**2).mean(axis=self.mean_over, keepdims=True) + self.epsilon)
        return x / size, size

    def row(self, index: Index) -> tuple[int | None, ...]:
        """The cells that are normalised together with a cell."""
        return (*index[:-1], None)

    def place(self, index: Index, shape: Shape) -> int:
        """Where a cell is among those, and γ of it among all."""
        return index[-1]

    def column(self, place: int, shape: Shape) -> tuple[int | None, ...]:
        """The cells that are multiplied by the same γ."""
        return (*(None for _ in shape[:-1]), place)

    def explain(self, index: Index, *inputs: Source) -> Working:
        x, gammas = inputs
        row = x.terms(*self.row(index))
        cell, gamma = x.operand(*index), gammas.operand(self.place(index, x.shape))
        square = Sum(self.texts[0], (row,), row.values**2 / len(row.values), self.texts[1])
        normal = cell.value / math.sqrt(square.total + self.epsilon)
        items = (
            Value("x", cell.value, cell),
            square,
            Value("ε", self.epsilon),
            Value("x ÷ √(mean x² + ε)", normal),
            Value("· γ", gamma.value, gamma),
        )
        return Working(items, normal * gamma.value, f"{spoken(normal)} · {bracketed(gamma.value)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        x, gammas = inputs
        if toward == 1:
            column = self.column(index[0], x.shape)
            return self.toward_gamma(x.read(whole(x.shape)), column, gradient.terms(*column))
        own = x.terms(*self.row(index)).values
        size = math.sqrt((own**2).mean() + self.epsilon)
        normal = own / size
        row, gamma = gradient.terms(*self.row(index)), gammas.factor(None)
        along = Sum("mean ∂y γ x̂", (row, gamma), row.values * gamma.values * normal / len(normal), self.texts[2])
        place = self.place(index, x.shape)
        cell, weight, here = row.operand(place), gamma.operand(place), float(normal[place])
        items = (
            Value("∂y", cell.value, cell),
            Value("· γ", weight.value, weight),
            along,
            Value("x̂", here, x.operand(*index), "x ÷ √(mean x² + ε)"),
            Value("÷", size, note="√(mean x² + ε)"),
        )
        return Working(items, (cell.value * weight.value - here * along.total) / size)


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

    @property
    def _norm(self) -> LayerNorm:
        return LayerNorm(self.epsilon)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        total = self._sum(backend, *inputs)
        return self._norm.forward(backend, total, *inputs[self.parts :], out=total)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = norm(a + b + …); each addend gets the whole gradient of the sum."""
        total = self._sum(backend, *inputs)
        toward_sum, *weights = self._norm.backward(backend, gradient, output, total, *inputs[self.parts :])
        return *(toward_sum for _ in range(self.parts)), *weights

    def _sum(self, backend: Backend, *inputs: Array) -> Array:
        total = backend.like(inputs[0])
        total[...] = inputs[0]
        for part in inputs[1 : self.parts]:
            total += part
        return total

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        return *(region for _ in range(self.parts)), (region[-1],), (region[-1],)

    def explain(self, index: Index, *inputs: Source) -> Working:
        operands = [source.operand(*index) for source in inputs[: self.parts]]
        row = np.sum([source.line(index[0], None) for source in inputs[: self.parts]], axis=0)
        gamma, beta = (source.operand(index[1]) for source in inputs[self.parts :])
        mean, variance = float(row.mean()), float(row.var())
        normal = (row[index[1]] - mean) / math.sqrt(variance + self.epsilon)
        items: list[Item] = [Value("+" if i else "", part.value, part) for i, part in enumerate(operands)]
        items += [
            Value("sum", float(row[index[1]])),
            Value("μ", mean, note="mean of the summed row"),
            Value("σ²", variance, note="variance of the summed row"),
            Value("ε", self.epsilon),
            Value("(sum − μ) ÷ √(σ² + ε)", float(normal)),
            Value("· γ", gamma.value, gamma),
            Value("+ β", beta.value, beta),
        ]
        left = f"{spoken(float(normal))} · {bracketed(gamma.value)} + {bracketed(beta.value)}"
        return Working(tuple(items), float(normal * gamma.value + beta.value), left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        parts = inputs[: self.parts]
        total = Source("sum", parts[0].shape, lambda region: np.sum([part.read(region) for part in parts], axis=0))
        inner = max(toward - self.parts + 1, 0)
        working = self._norm.explain_backward(index, inner, gradient, output, total, *inputs[self.parts :])
        items = tuple(replace(item, source=None) if _is_of(item, total.name) else item for item in working.items)
        return Working(items, working.result)

    def flops(self, *inputs: Axes) -> int:
        return super().flops(*inputs) * (self.parts - 1 + 7)


def _is_of(item: Item, name: str) -> TypeGuard[Value]:
    return isinstance(item, Value) and item.source is not None and item.source.name == name


@dataclass(frozen=True)
class UnitLength(Op):
    """x ÷ max(‖x‖, ε) over the last axis: products of such vectors are cosines. Input: x (… × d).

    Attributes:
        least: ε; a vector that is shorter is divided by it.
    """

    definition = "x ÷ ‖x‖"
    whole_rows = True
    cost = 3
    chain = ("(∂y − y Σ ∂y y) ÷ ‖x‖",)
    least: float = 1e-12

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        (x,) = inputs
        return x / self._divisor(backend, x)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x / ‖x‖; of a vector that is shorter than ε, x / ε."""
        divisor = self._divisor(backend, inputs[0])
        along = (gradient * output).sum(axis=-1, keepdims=True) * (divisor > self.least)
        return ((gradient - output * along) / divisor,)

    def _divisor(self, backend: Backend, x: Array) -> Array:
        squares = backend.xp.einsum("...i,...i->...", x, x)[..., None]
        return backend.xp.maximum(backend.xp.sqrt(squares), self.least)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row = inputs[0].factor(*index[:-1], None)
        cell, squares = inputs[0].operand(*index), Sum("Σ x²", (row,), row.values**2, "x²")
        length = max(float(np.sqrt(squares.total)), self.least)
        items = (Value("x", cell.value, cell), squares, Value("÷ ‖x‖", length, note="√ Σ x²"))
        return Working(items, cell.value / length, equation=f"{spoken(cell.value)} ÷ {spoken(length)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        line = (*index[:-1], None)
        row, made = gradient.factor(*line), output.factor(*line)
        length = max(float(np.sqrt((inputs[0].line(*line) ** 2).sum())), self.least)
        along = Sum("Σ ∂y y", (row, made), row.values * made.values * (length > self.least), "∂y y")
        cell, own = row.operand(index[-1]), made.operand(index[-1])
        items = (
            Value("∂y", cell.value, cell),
            Value("y", own.value, own),
            along,
            Value("÷ ‖x‖", length, note="√ Σ x²"),
        )
        return Working(items, (cell.value - own.value * along.total) / length)
