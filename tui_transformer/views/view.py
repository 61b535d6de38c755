"""A view: one step as a matrix to look at, without saying how it is drawn; the colours of its values are `RAMPS`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tui_transformer.records import dataclass

Values = npt.NDArray[Any]
ScaleKind = Literal["sequential", "diverging"]


RAMPS: dict[ScaleKind, tuple[str, ...]] = {
    "sequential": ("#f7f6ee", "#d9e6dc", "#a9cdc8", "#6da7c0", "#437fb2", "#2d5693", "#203668", "#141c40"),
    "diverging": (
        *("#153c78", "#2f6bb3", "#78aadd", "#c3dbf0"),
        *("#f7f6f0", "#f8d9a8", "#e5a04e", "#b8640f", "#733a06"),
    ),
}
"""The colours that stand for values on a light page, from the smallest to the largest, monotone in lightness.

The signed ones go from blue to orange through a neutral middle (after PuOr of ColorBrewer).
"""


def color(kind: ScaleKind, position: float) -> str:
    """The colour at a position from 0 to 1 of a ramp, between its two nearest colours."""
    ramp = RAMPS[kind]
    place = position * (len(ramp) - 1)
    low = min(int(place), len(ramp) - 2)
    pairs = zip(_channels(ramp[low]), _channels(ramp[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in pairs)


def _channels(code: str) -> tuple[int, int, int]:
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16)


def luminance(color: Sequence[int]) -> float:
    """The relative luminance of an sRGB colour of three channels up to 255, from 0 to 1 (WCAG 2)."""
    channels = [channel / 255 for channel in color]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)


def contrast_ratio(first: Sequence[int], second: Sequence[int]) -> float:
    """The contrast of two colours, 1 to 21 (WCAG 2, contrast ratio)."""
    darker, lighter = sorted(map(luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


def contrast(fill: str) -> str:
    """Black or white, whichever is easier to read."""
    return "#000000" if luminance(_channels(fill)) > 0.179 else "#ffffff"


@dataclass(frozen=True)
class Axis:
    """One side of a matrix: what it counts, how many there are, and the label of each (made on demand).

    `sequence` names the token sequence that it stands for, "" for none.
    """

    name: str
    size: int
    label: Callable[[int], str]
    sequence: str = ""


@dataclass(frozen=True)
class Scale:
    """The range that colours stand for. A diverging scale is symmetric around 0.

    `farthest` is the value farthest beyond it, where some are; 0 where none is.
    """

    kind: ScaleKind
    low: float
    high: float
    farthest: float = 0.0

    def beyond(self, values: Values) -> Values:
        """Which values lie beyond the scale, ∞ at least where it has no farthest; −∞ is masked."""
        if not self.farthest:
            infinite: Values = values == np.inf
            return infinite
        return (values > self.high) | ((values < self.low) & (values > -np.inf))

    def position(self, values: Values) -> Values:
        """Where values lie on the scale: 0 at `low`, 1 at `high`, cut outside (NaN stays NaN)."""
        low, high = self.low, self.high
        if math.isfinite(low) and math.isfinite(high) and high / 2 - low / 2 > np.finfo(np.float64).max / 2:
            low, high, values = low / 2, high / 2, values / 2  # no number is as wide as all of it
        with np.errstate(over="ignore"):  # of a value far outside
            return np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)


@dataclass(frozen=True)
class Tile:
    """A rectangle of a view's values: rows × columns numbers, the first at (row, column). −∞ and NaN are masked."""

    row: int
    column: int
    values: Values

    def covers(self, rows: range, columns: range) -> bool:
        """True if the tile holds every cell of rows × columns."""
        height, width = self.values.shape
        in_rows = self.row <= rows.start and rows.stop <= self.row + height
        return in_rows and self.column <= columns.start and columns.stop <= self.column + width


@dataclass(frozen=True, eq=False)
class Meeting:
    """Two lines of numbers that meet in a cell: the products of the first `done` are in it, which makes `value`."""

    first: str
    second: str
    numbers: Values
    done: int
    value: float


@dataclass(frozen=True, eq=False)
class Frame:
    """A moment on the way.

    Attributes:
        tile: The values so far; cells outside are not there yet.
        says: How far it is, in words: these are not the step's values.
        meeting: What runs into the cell under the cursor.
        front: The row that is being made; None where all are.
        bars: Of values that are drawn as bars, of which a full one is 1, what they sum to, in words; "" for others.
    """

    tile: Tile
    says: str
    meeting: Meeting | None = None
    front: int | None = None
    bars: str = ""


MASKED, HIDDEN = "masked", "hidden"


@dataclass(frozen=True)
class View:
    """One step (of one head, where it has heads) as a matrix of rows × columns numbers.

    `window` computes and brings only the cells that are asked for; `edited` are the rows and columns of
    those that were set. What is −∞ is said to be `absent`; so is NaN, unless that is `masked`, as a step may hold NaN.
    Of `shares` of 1, and of names, none is an outlier.
    """

    name: str
    title: str
    rows: Axis
    columns: Axis
    kind: ScaleKind
    window: Callable[[range, range], Values]
    formula: str = ""
    head: int | None = None
    heads: int = 0
    integer: bool = False
    edited: tuple[tuple[range, range], ...] = ()
    absent: str = MASKED
    shares: bool = False

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rows × columns."""
        return self.rows.size, self.columns.size

    def tile(self, rows: range, columns: range) -> Tile:
        """The cells of rows × columns, cut to the matrix."""
        rows, columns = (
            range(axis.size)[max(each.start, 0) : max(each.stop, each.start, 0)]
            for axis, each in ((self.rows, rows), (self.columns, columns))
        )
        empty = not rows or not columns
        values = np.zeros((len(rows), len(columns))) if empty else self.window(rows, columns)
        return Tile(rows.start, columns.start, values)

    def masked(self, values: Values) -> Values:
        """Some values of it, −∞ where they are left out; NaN is then what the step holds."""
        return values if self.absent == MASKED else np.where(np.isnan(values), -np.inf, values)

    def absent_in(self, values: Values) -> str:
        """What those of its values are that are drawn as no number, in words; "" where all are drawn."""
        nan = "NaN" if self.absent == MASKED else self.absent
        minus = MASKED if self.absent == HIDDEN else self.absent
        found = {minus: np.isneginf(values).any(), nan: np.isnan(values).any()}
        return ", ".join(name for name, there in found.items() if there)


def window_of(values: Values) -> Callable[[range, range], Values]:
    """The window of a view whose values are all there, rows × columns."""
    return lambda rows, columns: values[rows.start : rows.stop, columns.start : columns.stop]


def around(index: int, size: int, most: int) -> range:
    """At most so many of `size` indices, with `index` in the middle where there is room."""
    start = max(0, min(index - most // 2, size - most))
    return range(start, min(start + most, size))
