"""Exact sums: numbers added up without rounding, so that the order in which sums are merged changes no bit.

A number is cut into whole multiples of 2⁶⁴, 2³², … 2⁻⁹⁶, and every part is summed as an integer (a small
superaccumulator: Kulisch 2013, "Computer Arithmetic and Validity", §8; Demmel & Nguyen 2015, "Parallel Reproducible
Summation"). What is below 2⁻⁹⁶ is left away, of each number by itself. So + of two sums is associative and commutative;
one rounding comes at the end, where a sum is divided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tui_transformer.engine.backend import Host

FRACTION, DIGIT = 96, 32
UNITS = tuple(2.0**power for power in range(FRACTION - DIGIT, -FRACTION - 1, -DIGIT))
"""The value that one of each part stands for; 2³¹ numbers fit before a part is full."""

LARGEST = 2.0**40
"""Larger numbers, infinite ones and NaN are not counted."""

SPLITTER = 2.0**27 + 1


@dataclass(frozen=True, eq=False)
class Moments:
    """How many numbers, their sum and the sum of their squares, of every unit.

    Attributes:
        count: Units.
        total: Parts × units.
        squares: Parts × units.
    """

    count: Host
    total: Host
    squares: Host

    @classmethod
    def of(cls, values: Host) -> Moments:
        """Those of values, numbers × units, in float64."""
        there = np.abs(values) <= LARGEST  # false for NaN
        kept = np.where(there, values, 0.0)
        square, rest = _squared(kept)
        return cls(there.sum(axis=0), summed(kept), summed(square) + summed(rest))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def mean(self, unit: int) -> float:
        """The mean of a unit, rounded once; NaN where nothing was counted."""
        count = int(self.count[unit])
        return float(_whole(self.total[:, unit]) / count) if count else math.nan

    def deviation(self, unit: int) -> float:
        """√(Σ (x − mean)² ÷ (N − 1)) of a unit; NaN of fewer than two numbers."""
        count = int(self.count[unit])
        if count < 2:
            return math.nan
        spread = _whole(self.squares[:, unit]) - _whole(self.total[:, unit]) ** 2 / count
        return math.sqrt(max(float(spread / (count - 1)), 0.0))


def summed(values: Host) -> Host:
    """The sum of numbers × units over the numbers, as parts × units."""
    parts = np.empty((len(UNITS), values.shape[1]), np.int64)
    rest = values
    for at, unit in enumerate(UNITS):
        part = np.trunc(rest / unit)
        rest = rest - part * unit
        parts[at] = part.astype(np.int64).sum(axis=0)
    return parts


def _squared(values: Host) -> tuple[Host, Host]:
    """The square of every number and what its rounding left (Dekker 1971)."""
    square = values * values
    scaled = SPLITTER * values
    high = scaled - (scaled - values)
    low = values - high
    return square, ((high * high - square) + 2.0 * high * low) + low * low


def _whole(parts: Host) -> Fraction:
    """The number that the parts of one unit make."""
    number = 0
    for part in parts.tolist():
        number = (number << DIGIT) + part
    return Fraction(number, 1 << FRACTION)
