"""RMS norm: every row divided by its root mean square, then scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tui_transformer.engine.axis import Axes, Region, Shape, whole
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.blocks import by_rows
from tui_transformer.engine.explanation import Floats, Index, Operand, Source, Sum, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, along_column, flat, single, whole_rows
from tui_transformer.engine.spoken import bracketed, spoken


@dataclass(frozen=True)
class RmsNorm(Op):
    """x ÷ √(mean x² + ε) · γ over the last axis (Zhang & Sennrich 2019). Inputs: x (… × d), γ (d)."""

    chain: ClassVar[tuple[str, ...]] = ("(∂y γ − x̂ · mean(∂y γ x̂)) ÷ √(mean x² + ε)", "Σ ∂y x̂ over the rows")
    overwrites: ClassVar[bool] = True
    epsilon: float = 1e-6

    @property
    def formula(self) -> str:
        """The paper's formula."""
        return "x ÷ √(mean x² + ε) · γ"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of x."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Mean square, quotient, product."""
        x, gamma = inputs
        result = backend.like(x) if out is None else out

        def scale(rows: Array, target: Array) -> None:
            backend.xp.divide(rows, self._size(backend, rows), out=target)
            target *= gamma

        by_rows(backend, scale, x, result)
        return result

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ γ with x̂ = x / √(mean x² + ε)."""
        x, gamma = inputs
        size = self._size(backend, x)
        normal, toward_normal = x / size, gradient * gamma
        along = (toward_normal * normal).mean(axis=-1, keepdims=True)
        return (toward_normal - normal * along) / size, flat(gradient * normal).sum(axis=0)

    def _size(self, backend: Backend, x: Array) -> Array:
        """√(mean x² + ε) of every row."""
        squares = backend.xp.einsum("...i,...i->...", x, x)[..., None]
        return backend.xp.sqrt(squares / x.shape[-1] + self.epsilon)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """A row is normalised as a whole."""
        return whole_rows(region, shape)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The rows, and all of γ."""
        return region, (region[-1],)

    def explain(self, index: Index, *sources: Source) -> Working:
        """The mean square, ε, the quotient and γ."""
        x, gammas = sources
        row = x.factor(*index[:-1], None)
        cell, gamma = x.operand(*index), gammas.operand(index[-1])
        square = Sum("mean x²", (row,), row.values**2 / len(row.values), "x² ÷ d")
        return self._quotient(cell, square, gamma)

    def _quotient(self, cell: Operand, square: Sum, gamma: Operand) -> Working:
        """A cell over the root of a mean square, times γ."""
        normal = cell.value / math.sqrt(square.total + self.epsilon)
        items = (
            Value("x", cell.value, cell),
            square,
            Value("ε", self.epsilon),
            Value("x ÷ √(mean x² + ε)", normal),
            Value("· γ", gamma.value, gamma),
        )
        return Working(items, normal * gamma.value, f"{spoken(normal)} · {bracketed(gamma.value)}")

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """Toward x from the row's mean; toward γ from the column."""
        x, gammas = sources
        if toward == 1:
            normal, _ = self._normal(x.read(whole(x.shape)))
            column = (*(None for _ in x.shape[:-1]), *index)
            return single(along_column(gradient.terms(*column), normal[..., index[0]].reshape(-1)))
        normal, size = self._normal(x.line(*index[:-1], None))
        row, gamma = gradient.factor(*index[:-1], None), gammas.factor(None)
        along = Sum("mean ∂y γ x̂", (row, gamma), row.values * gamma.values * normal / len(normal), "∂y γ x̂ ÷ d")
        place = index[-1]
        own = Value("x̂", float(normal[place]), x.operand(*index), "x ÷ √(mean x² + ε)")
        return self._undone(row.operand(place), gamma.operand(place), along, own, float(size))

    @staticmethod
    def _undone(cell: Operand, gamma: Operand, along: Sum, own: Value, size: float) -> Working:
        """(∂y γ − x̂ · mean(∂y γ x̂)) ÷ √(mean x² + ε) in one cell."""
        items = (
            Value("∂y", cell.value, cell),
            Value("· γ", gamma.value, gamma),
            along,
            own,
            Value("÷", size, note="√(mean x² + ε)"),
        )
        return Working(items, (cell.value * gamma.value - own.value * along.total) / size)

    def _normal(self, x: Floats) -> tuple[Floats, Floats]:
        """Rows with mean square 1, and √(mean x² + ε) of every row, in float64."""
        size = np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.epsilon)
        return x / size, size[..., 0]

    def flops(self, *inputs: Axes) -> int:
        """Square, sum, quotient, product."""
        return 4 * super().flops(*inputs)
