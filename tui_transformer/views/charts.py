"""Charts as data, and where their axes are marked, without saying how they are drawn."""

from __future__ import annotations

import math

from tui_transformer.engine.number_format import minus, spoken
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class Series:
    """One curve: points (x, y) and the name in the legend."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]

    @property
    def logarithms(self) -> Series:
        """The curve on a logarithmic axis; values that have no logarithm are holes."""
        return Series(self.label, self.x, tuple(math.log10(y) if 0 < y < math.inf else math.nan for y in self.y))


@dataclass(frozen=True)
class LineChart:
    """Curves over a common x axis.

    With `logarithmic`, values above 0 on a logarithmic y axis; with `counted`, an x axis marked at round numbers.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    logarithmic: bool = False
    counted: bool = False


@dataclass(frozen=True)
class BarChart:
    """Named values; `marked` is the bar under the cursor. A masked value is −∞.

    With `logarithmic`, bars of values above 0 are as long as their logarithm is above that of the smallest.
    """

    title: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    marked: int | None = None
    logarithmic: bool = False


@dataclass(frozen=True)
class Histogram:
    """Counts of values between edges (one edge more than counts); `note` is a line of statistics."""

    title: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    note: str = ""


Chart = LineChart | BarChart | Histogram

DIGITS = (1, 2, 5)
LARGEST_PLAIN, SMALLEST_PLAIN = 1e6, 1e-4
"""Numbers from the one on, and steps below the other, are written with a power of ten."""


def marks(low: float, high: float, most: int, *, whole: bool = False) -> dict[float, str]:
    """The `ticks` of an axis, and how each is written."""
    places = ticks(low, high, most, whole=whole)
    return dict(zip(places, tick_texts(places), strict=True))


def powers(low: float, high: float) -> dict[float, str]:
    """The marks of a logarithmic axis, by logarithms: powers of ten; where fewer than two lie on it, also 2 and 5."""
    whole = range(math.floor(low), math.floor(high) + 1)
    known = {power + math.log10(digit): f"{digit}e{power}" for digit in DIGITS for power in whole}
    fine = {at: text for at, text in known.items() if low <= at <= high}
    coarse = {at: text for at, text in fine.items() if text[0] == "1"}
    return coarse if len(coarse) > 1 else fine


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten from low to high, 0 among them: as many as fit, at most `most`.

    At least one is looked for; with `whole`, of whole numbers alone, as for counts.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high < low:
        return ()
    if high == low or not (high - low) / max(most, 1) > 0:
        return (low,) if not whole or low == round(low) else ()
    power = math.floor(math.log10((high - low) / max(most, 1)))
    finer = range(0), 1, 0
    for exponent in range(max(power, 0) if whole else power, power + 4 + (abs(power) if whole else 0)):
        for digit in DIGITS:
            places = _multiples(digit, exponent, low, high)
            if places is not None and len(places) <= max(most, 1):
                if not places:  # one of a finer step, where one is
                    places, digit, exponent = finer
                    places = places[len(places) // 2 :][:1]
                return tuple(float(f"{place * digit}e{exponent}") for place in places)
            finer = places or range(0), digit, exponent
    return ()


def _multiples(digit: int, exponent: int, low: float, high: float) -> range | None:
    """The factors of those between the ends; None where no number is as small, or as large, as there would be."""
    step = float(f"{digit}e{exponent}")
    if not step > 0 or not math.isfinite(high / step) or not math.isfinite(low / step):
        return None
    slack = 1e-9 * (high - low) / step
    return range(math.ceil(low / step - slack), math.floor(high / step + slack) + 1)


def tick_texts(places: tuple[float, ...]) -> tuple[str, ...]:
    """Texts of marks: with the same number of decimals, or with a power of ten: `1.1e-5`."""
    largest = max((abs(place) for place in places), default=0.0)
    step = places[1] - places[0] if len(places) > 1 else largest
    if largest >= LARGEST_PLAIN or 0 < step < SMALLEST_PLAIN:
        finest = math.floor(math.log10(largest)) - math.floor(math.log10(step) + 1e-9) if step > 0 else 0
        return tuple(_power(place, min(max(finest, 3), 16)) for place in places)
    decimals = max(-math.floor(math.log10(step) + 1e-9), 0) if step > 0 else 0
    if len(places) == 1:
        return tuple(spoken(place, 6) for place in places)
    return tuple(minus(f"{place:,.{decimals}f}") if place else "0" for place in places)


def _power(place: float, decimals: int) -> str:
    """With so many decimals of the mantissa that marks which are beside each other differ."""
    mantissa, _, exponent = f"{place:.{decimals}e}".partition("e")
    return f"{minus(mantissa).rstrip('0').rstrip('.')}e{int(exponent)}" if place else "0"
