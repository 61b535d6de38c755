"""RMS norm: every row divided by its root mean square, then scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Sum, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, flat, whole_rows


@dataclass(frozen=True)
class RmsNorm(Op):
    """x ÷ √(mean x² + ε) · γ over the last axis (Zhang & Sennrich 2019). Inputs: x (… × d), γ (d)."""

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
        result = backend.xp.divide(x, self._size(backend, x), out=backend.like(x) if out is None else out)
        result *= gamma
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
        normal = cell.value / math.sqrt(square.total + self.epsilon)
        items = (
            Value("x", cell.value, cell),
            square,
            Value("ε", self.epsilon),
            Value("x ÷ √(mean x² + ε)", normal),
            Value("· γ", gamma.value, gamma),
        )
        return Working(items, normal * gamma.value)

    def flops(self, *inputs: Axes) -> int:
        """Square, sum, quotient, product."""
        return 4 * super().flops(*inputs)
