"""Positions that are added to the embedding or turn queries and keys."""

from __future__ import annotations

import math
from typing import Any

from tui_transformer.engine.axis import Axes, Axis
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops.base import Gradients, Op, passed_on
from tui_transformer.records import dataclass

BASE = 10000.0


@dataclass(frozen=True)
class Sinusoid(Op):
    """PE[pos][2i] = sin(pos / 10000^(2i/d)), PE[pos][2i+1] = cos(the same) (Vaswani et al. 2017, §3.5).

    Input: positions (n). Result: n × width. Angles are taken in float64 and rounded once.

    Attributes:
        halves: All sines are before all cosines, as in Marian.
        last: The last pair of an even width has the divisor 10000 itself: the divisors are 10000^(i ÷ (pairs − 1)), as
            in fairseq.
        silent: The position whose row is 0, as that of padding.
    """

    whole_rows = True
    along = ((0,),)
    cost = 2
    width: int
    halves: bool = False
    last: bool = False
    silent: int | None = None

    @property
    def formula(self) -> str:
        return f"{'sines, then cosines' if self.halves else 'sin, cos'} ({self._quotient})"

    @property
    def _quotient(self) -> str:
        return "pos ÷ 10000^(i/(d/2 − 1))" if self.last else "pos ÷ 10000^(2i/d)"

    def _power(self, pair: Any) -> Any:
        return pair / (self.width // 2 - 1) if self.last else 2.0 * pair / self.width

    def axes(self, *inputs: Axes) -> Axes:
        return *inputs[0], Axis("dimension", self.width)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        xp = backend.xp
        pairs = xp.arange((self.width + 1) // 2, dtype=xp.float64)
        # Sentences begin at the same place as a rule: one of them is worked out for all.
        places = inputs[0][:1] if bool((inputs[0] == inputs[0][:1]).all()) else inputs[0]
        angles = places[..., None] / BASE ** self._power(pairs)
        encoding = xp.empty((*inputs[0].shape, self.width), dtype=backend.dtype)
        sines, cosines = (
            (slice(0, pairs.size), slice(pairs.size, None)) if self.halves else (slice(0, None, 2), slice(1, None, 2))
        )
        encoding[..., sines] = xp.sin(angles)
        encoding[..., cosines] = xp.cos(angles)[..., : self.width // 2]
        if self.silent is not None:
            encoding[inputs[0] == self.silent] = 0
        return encoding

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        return (None,)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row, column = index
        position = inputs[0].operand(row)
        half = (self.width + 1) // 2
        pair, is_cosine = (column % half, column >= half) if self.halves else (column // 2, bool(column % 2))
        divisor = BASE ** self._power(pair)
        angle = position.value / divisor
        function, result = ("cos", math.cos(angle)) if is_cosine else ("sin", math.sin(angle))
        items = (
            position.called("pos"),
            Value("2i", 2 * pair, note=f"of d = {self.width}"),
            Value(self._quotient.removeprefix("pos ÷ "), divisor),
            Value(self._quotient, angle, note="radians"),
            Value(function, result),
        )
        if position.value == self.silent:
            return Working((*items, Value("0", 0.0, note="the row of padding is 0")), 0.0, "the row of padding")
        return Working(items, result, f"{function}({spoken(position.value)} ÷ {spoken(divisor)})")


@dataclass(frozen=True)
class Rotate(Op):
    """Rotary positions (Su et al. 2021), column i paired with column i + half as in the published checkpoints.

    x'ᵢ = xᵢ cos θ − xᵢ₊ₕ sin θ and x'ᵢ₊ₕ = xᵢ₊ₕ cos θ + xᵢ sin θ with θ = place · frequencyᵢ, for the first 2h columns;
    the rest stays. Turned columns are multiplied by `factor` besides (Peng et al. 2023, §3.4). Inputs: x (heads × n ×
    d_k), places (n).
    """

    whole_rows = True
    along = ((0, 1, 2), (1,))
    cost = 3
    chain = ("∂y turned back: (∂y cos θ + ∂y' sin θ, ∂y' cos θ − ∂y sin θ)",)
    frequencies: tuple[float, ...]
    factor: float = 1.0

    @property
    def half(self) -> int:
        """Pairs of columns that are turned."""
        return len(self.frequencies)

    @property
    def formula(self) -> str:
        turn = "(x cos θ − x' sin θ, x' cos θ + x sin θ)"
        return f"{turn if self.factor == 1.0 else f'{self.factor:.4g} · {turn}'}, θ = place · frequency"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
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

    def explain(self, index: Index, *inputs: Source) -> Working:
        if index[-1] >= 2 * self.half:
            cell = inputs[0].operand(*index)
            return Working((cell.called("x", "this column is not turned"),), cell.value)
        place, frequency = inputs[1].operand(index[1]), self.frequencies[index[-1] % self.half]
        shown = place.called("place"), Value("frequency", frequency)
        return self._turned("x", inputs[0], index, place.value * frequency, 1.0, shown)

    def explain_backward(
        self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source
    ) -> Working | None:
        if index[-1] >= 2 * self.half:
            return passed_on(gradient.operand(*index))
        angle = inputs[1].cell(index[1]) * self.frequencies[index[-1] % self.half]
        return self._turned("∂y", gradient, index, angle, -1.0)

    def _turned(
        self, symbol: str, source: Source, index: Index, angle: float, direction: float, shown: tuple[Value, ...] = ()
    ) -> Working:
        head, row, column = index
        away = self.half if column < self.half else -self.half
        cell, partner = source.operand(*index), source.operand(head, row, column + away)
        items = (
            cell.called(symbol),
            partner.called(f"{symbol}'", "the other column of the pair"),
            *shown,
            Value("θ", angle, note="place · frequency, radians"),
            Value("cos θ", math.cos(angle)),
            Value("sin θ", math.sin(angle)),
            *(() if self.factor == 1.0 else (Value("factor", self.factor, note="of every turned column"),)),
        )
        cosine, sine = math.cos(angle), (direction if away < 0 else -direction) * math.sin(angle)
        left = f"{bracketed(cell.value)} · {bracketed(cosine)} + {bracketed(partner.value)} · {bracketed(sine)}"
        left = left if self.factor == 1.0 else f"{spoken(self.factor)} · ({left})"
        return Working(items, self.factor * (cell.value * cosine + partner.value * sine), left)
