"""Bars of a list on a scale that is said beside them, and the same whatever else is in the list."""

from __future__ import annotations

import math

from tui_transformer.records import dataclass
from tui_transformer.views.numbers import short_number

AXIS, BEYOND = "│", "◂▸"
"""Zero of a scale with both signs, and the end of a bar that is longer than there is room for."""

LINES, HALVES = "━", "╺╸"
"""A column of a bar, and half a one that goes left or right."""


@dataclass(frozen=True)
class BarScale:
    """What bars stand for.

    Attributes:
        full: What is as long as there is room for.
        unit: Of what it is; "" for a share or a number.
        signed: Bars go left and right from zero in the middle.
    """

    full: float
    unit: str = ""
    signed: bool = False

    @classmethod
    def holding(cls, largest: float, unit: str = "", *, signed: bool = False) -> BarScale:
        """The scale to 1, or where that is too short, to the first of 2, 5, 10, 20, 50 … that holds so much."""
        size = largest if math.isfinite(largest) else 0.0
        power = 10.0 ** max(math.floor(math.log10(size)), 0) if size > 1 else 1.0
        full = next((power * each for each in (1.0, 2.0, 5.0) if power * each >= size), 10 * power)
        return cls(full, unit, signed)

    @property
    def says(self) -> str:
        """`full bar 1 nat`, `full bar ±1 nat`."""
        unit = f" {self.unit}" if self.unit else ""
        return f"full bar {'±' * self.signed}{short_number(self.full)}{unit}"

    def bar(self, value: float, width: int) -> str:
        """A bar of a number in so many columns, to half a one; what is no number has none."""
        size = 0.0 if math.isnan(value) else value / self.full
        if not self.signed:
            return self._to_the_right(abs(size), width)
        room = max((width - 1) // 2, 0)
        left, right = ("", self._to_the_right(size, room)) if size >= 0 else (self._to_the_right(-size, room)[::-1], "")
        return f"{left.translate(_TURNED):>{room}}{AXIS}{right:<{room}}"

    def _to_the_right(self, size: float, width: int) -> str:
        if size > 1 and width > 0:
            return LINES * (width - 1) + BEYOND[1]
        halves = round(size * 2 * width)
        return LINES * (halves // 2) + HALVES[1] * (halves % 2)


_TURNED = str.maketrans({HALVES[1]: HALVES[0], BEYOND[1]: BEYOND[0]})
