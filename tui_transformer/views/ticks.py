"""Where an axis is marked: at 1, 2 or 5 × 10^k, evenly spaced, with 0 among them where it is in range."""

from __future__ import annotations

import math

from tui_transformer.engine.spoken import minus, spoken

DIGITS = (1, 2, 5, 10)
LARGEST_PLAIN, SMALLEST_PLAIN = 1e6, 1e-4
"""Numbers from the one on, and steps below the other, are written with a power of ten."""


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten from low to high: as many as there are room for, at most `most`.

    Args:
        low: The lower end.
        high: The upper end.
        most: How many marks fit; at least one is looked for.
        whole: Whole numbers alone, as for counts.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high < low:
        return ()
    if high == low or not (high - low) / max(most, 1) > 0:
        return (low,) if not whole or low == round(low) else ()
    power = math.floor(math.log10((high - low) / max(most, 1)))
    for exponent in range(max(power, 0) if whole else power, power + 4 + (abs(power) if whole else 0)):
        for digit in DIGITS[:3]:
            multiples = _multiples(digit, exponent, low, high, most)
            if multiples is not None:
                return multiples or _first(digit, exponent, low, high, whole=whole)
    return ()


def _multiples(digit: int, exponent: int, low: float, high: float, most: int) -> tuple[float, ...] | None:
    """Those between the ends; None where they are too many."""
    step = float(f"{digit}e{exponent}")
    if not step > 0 or not math.isfinite(high / step) or not math.isfinite(low / step):
        return None
    slack = 1e-9 * (high - low) / step
    first, last = math.ceil(low / step - slack), math.floor(high / step + slack)
    if last - first + 1 > max(most, 1):
        return None
    return tuple(float(f"{place * digit}e{exponent}") for place in range(first, last + 1))


def _first(digit: int, exponent: int, low: float, high: float, *, whole: bool) -> tuple[float, ...]:
    """One mark of a finer step, where none of this one lies between the ends."""
    for smaller in range(exponent, max(exponent - 4, -1 if whole else exponent - 4), -1):
        for each in reversed(DIGITS[:3]):
            if (smaller, each) < (exponent, digit) or smaller < exponent:
                multiples = _multiples(each, smaller, low, high, 1 << 20)
                if multiples:
                    return (multiples[len(multiples) // 2],)
    return ()


def tick_texts(places: tuple[float, ...]) -> tuple[str, ...]:
    """How marks are written: with the same number of decimals, or with a power of ten: `1.1e-5`."""
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
