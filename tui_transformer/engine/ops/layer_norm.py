"""Layer norm: every row to mean 0 and variance 1, then scaled and shifted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.blocks import by_rows
from tui_transformer.engine.explanation import Floats, Index, Item, Source, Sum, Value, Working, added
from tui_transformer.engine.ops.base import Gradients, Op, along_column, flat, single, whole_rows
from tui_transformer.engine.spoken import bracketed, spoken


@dataclass(frozen=True)
class LayerNorm(Op):
    """(x − μ) ÷ √(σ² + ε) · γ (+ β) over the last axis (Ba et al. 2016).

    Inputs: x (… × d), γ (d) and, where there is one, β (d). σ² is the mean of squares (not the sample variance).
    """

    undone_from: ClassVar[tuple[int, ...]] = (0, 1)
    chain: ClassVar[tuple[str, ...]] = (
        "(∂y γ − mean(∂y γ) − x̂ · mean(∂y γ x̂)) ÷ σ",
        "Σ ∂y x̂ over the rows",
        "Σ ∂y over the rows",
    )
    overwrites: ClassVar[bool] = True
    epsilon: float = 1e-5

    @property
    def formula(self) -> str:
        """The paper's formula."""
        return "(x − μ) ÷ √(σ² + ε) · γ + β"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of x."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Mean, difference, mean square, then in place."""
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

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A row is normalised as a whole."""
        return whole_rows(region, shape)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows, and all of γ and β."""
        return region, *((region[-1],) for _ in inputs[1:])

    def explain(self, index: Index, *sources: Source) -> Working:
        """μ, σ², ε, the normalised value, γ and β."""
        x, gammas, *betas = sources
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

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Toward x from the row's two means; toward γ and β from the column."""
        x, gammas = sources[:2]
        column = (*(None for _ in x.shape[:-1]), *index)
        if toward == 2:
            return single(added("Σ ∂y over the rows", gradient.terms(*column)))
        if toward == 1:
            rows = self._normal(x.read(whole(x.shape)))[0][..., index[0]]
            return single(along_column(gradient.terms(*column), rows.reshape(-1)))
        normal, deviation = self._normal(x.line(*index[:-1], None))
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
            Value("÷ σ", float(deviation), note="√(σ² + ε)"),
        )
        return Working(items, (cell.value * weight.value - mean.total - own * along.total) / float(deviation))

    def _normal(self, x: Floats) -> tuple[Floats, Floats]:
        """Rows with mean 0 and variance 1, and √(σ² + ε) of every row, in float64."""
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)
        return centred / deviation, deviation[..., 0]

    def flops(self, *inputs: Axes) -> int:
        """Mean, difference, square, sum, quotient, product, sum."""
        return 7 * super().flops(*inputs)
