"""The confidence interval of a mean: mean ± t·s ÷ √N, by Student's t with N − 1 degrees of freedom (Student 1908)."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

LEVEL = 0.95
MANY = 400
"""Degrees of freedom from which the expansion around the normal distribution is exact to eight digits."""


def half_width(deviation: float, count: int) -> float:
    """Half of the interval; NaN for fewer than two numbers."""
    return student(count - 1) * deviation / math.sqrt(count) if count > 1 else math.nan


@cache
def student(freedom: int) -> float:
    """The t that |T| exceeds with probability 1 − `LEVEL`."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    if freedom >= MANY:  # Abramowitz & Stegun 1964, 26.7.5
        return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    low, high = 0.0, 64.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < LEVEL else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """The probability that |T| is at most t (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = total = 0.0
    if freedom > 1:
        term = total = cosine if odd else 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
