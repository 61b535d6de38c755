"""Sinusoid: the positional encoding of the 2017 paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tui_transformer.engine.axis import Axes, Axis, Region, Shape
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Index, Source, Value, Working
from tui_transformer.engine.ops.base import Gradients, Op
from tui_transformer.engine.spoken import spoken

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

    width: int
    halves: bool = False
    last: bool = False
    silent: int | None = None

    @property
    def formula(self) -> str:
        """Sine in even, cosine in odd columns."""
        return f"{'sines, then cosines' if self.halves else 'sin, cos'} ({self._quotient})"

    @property
    def _quotient(self) -> str:
        return "pos ÷ 10000^(i/(d/2 − 1))" if self.last else "pos ÷ 10000^(2i/d)"

    def _power(self, pair: Any) -> Any:
        """The exponent of 10000, for one pair of columns or all."""
        return pair / (self.width // 2 - 1) if self.last else 2.0 * pair / self.width

    def axes(self, *inputs: Axes) -> Axes:
        """Tokens × model width."""
        return *inputs[0], Axis("dimension", self.width)

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """Angles by broadcasting, then sine into even columns and cosine into odd ones."""
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
        """None: positions are whole numbers."""
        return (None,)

    def widen(self, region: Region, inputs: Sequence[Shape], shape: Shape) -> Region:
        """Whole rows: the columns count pairs from 0."""
        return region[0], range(shape[1])

    def reads(self, region: Region, inputs: Sequence[Shape]) -> tuple[Region, ...]:
        """The positions of the rows."""
        return ((region[0],),)

    def explain(self, index: Index, *sources: Source) -> Working:
        """Position, divisor, angle, and the function of the column's parity."""
        row, column = index
        position = sources[0].operand(row)
        half = (self.width + 1) // 2
        pair, is_cosine = (column % half, column >= half) if self.halves else (column // 2, bool(column % 2))
        divisor = BASE ** self._power(pair)
        angle = position.value / divisor
        function, result = ("cos", math.cos(angle)) if is_cosine else ("sin", math.sin(angle))
        items = (
            Value("pos", position.value, position),
            Value("2i", 2 * pair, note=f"of d = {self.width}"),
            Value(self._quotient.removeprefix("pos ÷ "), divisor),
            Value(self._quotient, angle, note="radians"),
            Value(function, result),
        )
        if position.value == self.silent:
            return Working((*items, Value("0", 0.0, note="the row of padding is 0")), 0.0, "the row of padding")
        return Working(items, result, f"{function}({spoken(position.value)} ÷ {spoken(divisor)})")

    def flops(self, *inputs: Axes) -> int:
        """A division and a function a cell."""
        return 2 * super().flops(*inputs)
