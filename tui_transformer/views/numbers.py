"""Numbers and shares in cells of a few columns: `.72`, `−1.25`, `12.3`, `3e-4`, `█▌`."""

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


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of one matrix are written: in at most `width` columns, with the same number of decimals.

    `column` is the width of the numbers within the scale, in which they are aligned at the right.
    """

    width: int
    column: int
    decimals: int
    scientific: bool = False

    def __call__(self, value: float) -> str:
        """Write a number, as exactly as the width allows; an exact zero is `0`, what is not finite `inf`."""
        return self.row((value,))[0]

    def row(self, values: Sequence[float]) -> list[str]:
        """Write many numbers at once, which takes half as long."""
        if self.scientific:
            texts = map(_exponent, values)
        else:
            texts = map(_trimmed, ((f"%.{self.decimals}f " * len(values)) % tuple(values)).split())
        return [
            text if value and math.isfinite(value) and len(text) <= self.width else self._seldom(value)
            for value, text in zip(values, texts, strict=True)
        ]

    def _seldom(self, value: float) -> str:
        if value == 0 or not math.isfinite(value):
            return "inf" if value else "0"
        return self._shorter(value)

    def _shorter(self, value: float) -> str:
        tries = [_fixed(value, decimals) for decimals in range(self.decimals, -1, -1)] + [_exponent(value)]
        return next((text for text in tries if len(text) <= self.width), tries[-1][: self.width - 1] + "…")


def shortest_width(scale: Scale, *, integer: bool) -> int:
    """The fewest columns in which the numbers of a scale are told apart."""
    sign, digits, largest = _shape(scale)
    if integer:
        return sign + digits
    if _is_scientific(largest):
        return sign + len("9e-9")
    if largest >= 10:
        return sign + digits + len(".9")
    return sign + digits + len(".9" if sign and digits else ".99") + (0 < largest < 0.1)


def least_number_width(scale: Scale, *, integer: bool) -> int:
    """The narrowest cell in which the numbers of a scale are told apart."""
    return max(shortest_width(scale, integer=integer) + BRACKETS, SMALLEST_NUMBER_CELL)


def number_format(scale: Scale, width: int, *, integer: bool, exact: bool = False) -> NumberFormat:
    """The format of numbers in `width` columns: two decimals, or with `exact` as many as there is room for."""
    sign, digits, largest = _shape(scale)
    if integer:
        return NumberFormat(width, min(sign + digits, width), 0)
    room = max(width - sign - digits - 1, 0)
    decimals = min(room, max(_FLOAT32_DIGITS - digits, 0) if exact else 2 + (0 < largest < 0.1))
    if _is_scientific(largest) and decimals < _FLOAT32_DIGITS:
        return NumberFormat(width, min(sign + len("9e-9"), width), 0, scientific=True)
    return NumberFormat(width, min(sign + digits + bool(decimals) + decimals, width), decimals)


def short_number(value: float) -> str:
    """A number of about three digits for legends and axes."""
    text = f"{value + 0.0:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return MINUS + text[1:] if text.startswith("-") else text


def share_bar(share: float, width: int) -> str:
    """A bar, as many cells wide as there are of `width`, padded to `width`, the cells of 1.

    Of a share from 0 to 1 what is not 0 has at least an eighth of a cell.
    """
    eighths = round(min(max(0.0, share), 1.0) * width * 8)  # in this order what is no number has no bar
    full, rest = divmod(max(eighths, int(share > 0)), 8)
    return ("█" * full + _EIGHTHS[rest][: int(rest > 0)]).ljust(width)[:width]


@lru_cache(maxsize=64)
def widest_label(axis: Axis) -> int:
    """The cells of the widest label among the first few hundred and the last."""
    indices = {*range(min(axis.size, 512)), axis.size - 1} if axis.size else ()
    return max((cells(axis.label(index)) for index in indices), default=0)


def _shape(scale: Scale) -> tuple[int, int, float]:
    """Columns for the sign, columns before the point, and the largest magnitude."""
    largest = max(abs(scale.low), abs(scale.high))
    digits = int(math.log10(largest)) + 1 if 1 <= largest < math.inf else 0
    return int(scale.low < 0), digits, largest


def _is_scientific(largest: float) -> bool:
    return 0 < largest < 0.01


def _fixed(value: float, decimals: int) -> str:
    return _trimmed(f"{value:.{decimals}f}")


@lru_cache(1 << 12)
def _trimmed(text: str) -> str:
    """A number without the 0 before the point, and without the sign of zero."""
    if "." not in text:
        return "0" if text == "-0" else text.replace("-", MINUS)
    sign, magnitude = (MINUS, text[1:]) if text[0] == "-" else ("", text)
    if magnitude.strip("0") == ".":
        sign = ""
    return sign + magnitude.removeprefix("0")


def _exponent(value: float) -> str:
    mantissa, _, power = f"{value:.0e}".partition("e")
    mantissa = mantissa.replace("-", MINUS)
    return f"{mantissa}e{int(power)}" if power else mantissa
