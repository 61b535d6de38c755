"""Charts as data, without saying how they are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
    """Named values; `marked` is the bar under the cursor. A masked value is NaN.

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


def around(index: int, size: int, most: int) -> range:
    """At most so many of `size` indices, with `index` in the middle where there is room."""
    start = max(0, min(index - most // 2, size - most))
    return range(start, min(start + most, size))
