"""Rotate: queries and keys turned by an angle that grows with their place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.engine.axis import Axes, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Item, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op, passed_on, whole_rows
from tui_transformer.engine.spoken import bracketed, spoken


@dataclass(frozen=True)
class Rotate(Op):
    """Rotary positions (Su et al. 2021), column i paired with column i + half as in the published checkpoints.

    x'ᵢ = xᵢ cos θ − xᵢ₊ₕ sin θ and x'ᵢ₊ₕ = xᵢ₊ₕ cos θ + xᵢ sin θ with θ = place · frequencyᵢ, for the first 2h columns;
    the rest stays. Turned columns are multiplied by `factor` besides (Peng et al. 2023, §3.4). Inputs: x (heads × n ×
    d_k), places (n).
    """

    chain: ClassVar[tuple[str, ...]] = ("∂y turned back: (∂y cos θ + ∂y' sin θ, ∂y' cos θ − ∂y sin θ)",)
    frequencies: tuple[float, ...]
    factor: float = 1.0

    @property
    def half(self) -> int:
        """Pairs of columns that are turned."""
        return len(self.frequencies)

    @property
    def formula(self) -> str:
        """The turn of a pair."""
        turn = "(x cos θ − x' sin θ, x' cos θ + x sin θ)"
        return f"{turn if self.factor == 1.0 else f'{self.factor:.4g} · {turn}'}, θ = place · frequency"

    def axes(self, *inputs: Axes) -> Axes:
        """Those of x."""
        return inputs[0]

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Both halves of the turned columns; the others are copied."""
        return self._turn(backend, inputs[0], inputs[1], 1.0)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = R x with a rotation R (times the factor); ∂x = Rᵀ ∂y turns back."""
        return self._turn(backend, gradient, inputs[1], -1.0), None

    def _turn(self, backend: Backend, x: Array, places: Array, direction: float) -> Array:
        xp, h = backend.xp, self.half
        angles = places[:, None, :, None] * xp.asarray(self.frequencies, dtype=xp.float64)
        cos, sin = self.factor * xp.cos(angles), self.factor * direction * xp.sin(angles)
        cos, sin = cos.astype(x.dtype), sin.astype(x.dtype)
        first, second = x[..., :h], x[..., h : 2 * h]
        result = backend.empty(x.shape, x.dtype)
        result[..., :h] = first * cos - second * sin
        result[..., h : 2 * h] = second * cos + first * sin
        result[..., 2 * h :] = x[..., 2 * h :]
        return result

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Whole rows: a column is turned with its partner."""
        return whole_rows(region, shape)

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The same rows, and their places."""
        return region, (region[1],)

    def explain(self, index: Index, *sources: Source) -> Working:
        """Both columns of the pair, the angle, its sine and cosine."""
        head, row, column = index
        x, places = sources
        cell = x.operand(*index)
        if column >= 2 * self.half:
            return Working((Value("x", cell.value, cell, "this column is not turned"),), cell.value)
        pair, sign = column % self.half, 1.0 if column >= self.half else -1.0
        partner = x.operand(head, row, column + self.half if column < self.half else pair)
        place = places.operand(row)
        angle = place.value * self.frequencies[pair]
        items = (
            Value("x", cell.value, cell),
            Value("x'", partner.value, partner, "the other column of the pair"),
            Value("place", place.value, place),
            Value("frequency", self.frequencies[pair]),
            Value("θ", angle, note="place · frequency, radians"),
            Value("cos θ", math.cos(angle)),
            Value("sin θ", math.sin(angle)),
            *self._factors(),
        )
        return self._turned(items, cell.value, partner.value, angle, sign)

    def _turned(self, items: tuple[Item, ...], x: float, partner: float, angle: float, sign: float) -> Working:
        """One column of a pair that is turned by an angle, and the sum that it is."""
        cosine, sine = math.cos(angle), sign * math.sin(angle)
        left = f"{bracketed(x)} · {bracketed(cosine)} + {bracketed(partner)} · {bracketed(sine)}"
        left = left if self.factor == 1.0 else f"{spoken(self.factor)} · ({left})"
        return Working(items, self.factor * (x * cosine + partner * sine), left)

    def _factors(self) -> tuple[Value, ...]:
        """Factor of the turned pair, where there is one."""
        return () if self.factor == 1.0 else (Value("factor", self.factor, note="of every turned column"),)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *sources: Source
    ) -> Working:
        """The gradients of the pair, turned back by the same angle."""
        head, row, column = index
        cell = gradient.operand(*index)
        if column >= 2 * self.half:
            return passed_on(cell)
        pair, sign = column % self.half, -1.0 if column >= self.half else 1.0
        partner = gradient.operand(head, row, column + self.half if column < self.half else pair)
        angle = sources[1].cell(row) * self.frequencies[pair]
        items = (
            Value("∂y", cell.value, cell),
            Value("∂y'", partner.value, partner, "the other column of the pair"),
            Value("θ", angle, note="place · frequency, radians"),
            Value("cos θ", math.cos(angle)),
            Value("sin θ", math.sin(angle)),
            *self._factors(),
        )
        return self._turned(items, cell.value, partner.value, angle, sign)

    def flops(self, *inputs: Axes) -> int:
        """Two products and a sum a cell."""
        return 3 * super().flops(*inputs)
