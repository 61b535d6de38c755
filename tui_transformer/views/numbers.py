"""Numbers and shares in cells of a few columns: `.72`, `−1.25`, `12.3`, `3e-4`, `█▌`; bars of a list, on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from tui_transformer.records import dataclass
from tui_transformer.text.display import cells
from tui_transformer.views.view import Axis, Scale

MINUS = "−"

SMALLEST_NUMBER_CELL = 5
"""Columns of the narrowest cell that shows a number."""

BRACKETS = 2
"""Columns of a cell that the cursor's brackets need beside the number."""

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FLOAT32_DIGITS = 7

AXIS, BEYOND = "│", "◂▸"
"""Zero of a scale with both signs, and the end of a bar that is longer than there is room for."""

LINES, HALVES = "━", "╺╸"
"""A column of a bar, and half a one that goes left or right."""
_TURNED = str.maketrans({HALVES[1]: HALVES[0], BEYOND[1]: BEYOND[0]})


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of one matrix are written: in at most `width` columns, with the same number of decimals.

    `column` is the width of the numbers within the scale, in which they are aligned at the right. Where one has too
    long a power of ten and is less than `least`, it is 0 beside the others.
    """

    width: int
    column: int
    decimals: int
    scientific: bool = False
    least: float = 0.0

    def __call__(self, value: float) -> str:
        """Write a number, as exactly as the width allows; an exact zero is `0`."""
        return self.row((value,))[0]

    def row(self, values: Sequence[float]) -> list[str]:
        """Write many numbers at once, which takes half as long."""
        form, shorten = ("%.0e ", _exponent) if self.scientific else (f"%.{self.decimals}f ", _trimmed)
        texts = map(shorten, (form * len(values) % tuple(values)).split())
        return [
            "0" if value == 0 else text if len(text) <= self.width else self._shorter(value)
            for value, text in zip(values, texts, strict=True)
        ]

    def _shorter(self, value: float) -> str:
        if abs(value) < self.least:
            return "0"
        places = () if self.scientific else range(self.decimals, -1, -1)
        fixed = [_trimmed(f"{value:.{decimals}f}") for decimals in places]
        tries = [*fixed, _exponent(f"{value:.0e}")]
        return next((text for text in tries if len(text) <= self.width), tries[-1][: self.width - 1] + "…")


def shortest_width(scale: Scale, *, integer: bool) -> int:
    """The fewest columns in which the numbers of a scale are told apart."""
    sign, digits, largest, is_scientific = _shape(scale)
    if integer:
        return sign + digits
    if is_scientific:
        return sign + _power_width(largest)
    if largest >= 10:
        return sign + digits + len(".9")
    return sign + digits + len(".9" if sign and digits else ".99") + (0 < largest < 0.1)


def least_number_width(scale: Scale, *, integer: bool) -> int:
    """The narrowest cell in which the numbers of a scale are told apart."""
    return max(shortest_width(scale, integer=integer) + BRACKETS, SMALLEST_NUMBER_CELL)


def number_format(scale: Scale, width: int, *, integer: bool, exact: bool = False) -> NumberFormat:
    """The format of numbers in `width` columns: two decimals, or with `exact` as many as there is room for."""
    sign, digits, largest, is_scientific = _shape(scale)
    if integer:
        return NumberFormat(width, min(sign + digits, width), 0)
    room = max(width - sign - digits - 1, 0)
    decimals = min(room, max(_FLOAT32_DIGITS - digits, 0) if exact else 2 + (0 < largest < 0.1))
    if is_scientific and decimals < _FLOAT32_DIGITS:
        return NumberFormat(width, min(sign + _power_width(largest), width), 0, scientific=True, least=largest / 200)
    return NumberFormat(width, min(sign + digits + bool(decimals) + decimals, width), decimals)


def digits_apart(values: Sequence[float], least: int = 3) -> int:
    """As many digits as numbers that differ need to look different, `least` or more."""
    return next((n for n in range(least, 17) if len({f"{value:.{n}g}" for value in values}) == len({*values})), 17)


def short_number(value: float, digits: int = 3) -> str:
    """A number of about three digits for legends and axes."""
    text = f"{value + 0.0:.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return MINUS + text[1:] if text.startswith("-") else text


def share_bar(share: float, width: int) -> str:
    """A bar, as many cells wide as there are of `width`, padded to `width`, the cells of 1.

    Of a share from 0 to 1 what is not 0 has at least an eighth of a cell.
    """
    eighths = round(min(max(0.0, share), 1.0) * width * 8)  # in this order what is no number has no bar
    full, rest = divmod(max(eighths, int(share > 0)), 8)
    return ("█" * full + _EIGHTHS[rest][: int(rest > 0)]).ljust(width)[:width]


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
        power = 10.0 ** math.floor(math.log10(size)) if size > 1 else 1.0
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


@lru_cache(maxsize=64)
def widest_label(axis: Axis) -> int:
    """The cells of the widest label among the first few hundred and the last."""
    indices = {*range(min(axis.size, 512)), axis.size - 1} if axis.size else ()
    return max((cells(axis.label(index)) for index in indices), default=0)


def _shape(scale: Scale) -> tuple[int, int, float, bool]:
    """Columns for the sign, columns before the point, the largest magnitude, and whether it has a power of ten."""
    largest = max(abs(scale.low), abs(scale.high))
    digits = int(math.log10(largest)) + 1 if 1 <= largest < math.inf else 0
    return int(scale.low < 0), digits, largest, 0 < largest < 0.01


def _power_width(largest: float) -> int:
    """Columns of a number with a power of ten: `9e-9`, `9e-12`."""
    return len(_exponent(f"{largest:.0e}"))


@lru_cache(1 << 12)
def _trimmed(text: str) -> str:
    """A number without the 0 before the point, and without the sign of zero."""
    if "." not in text:
        return "0" if text == "-0" else text.replace("-", MINUS)
    sign, magnitude = (MINUS, text[1:]) if text[0] == "-" else ("", text)
    if magnitude.strip("0") == ".":
        sign = ""
    return sign + magnitude.removeprefix("0")


@lru_cache(1 << 12)
def _exponent(text: str) -> str:
    """A number without the zeros of its exponent."""
    mantissa, _, power = text.partition("e")
    mantissa = mantissa.replace("-", MINUS)
    return f"{mantissa}e{int(power)}" if power else mantissa
