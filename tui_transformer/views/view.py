"""A view: one step as a matrix to look at, without saying how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
ScaleKind = Literal["sequential", "diverging"]


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
    """The range that colours stand for. A diverging scale is symmetric around 0."""

    kind: ScaleKind
    low: float
    high: float

    def position(self, values: Values) -> Values:
        """Where values lie on the scale: 0 at `low`, 1 at `high`, cut outside (NaN stays NaN)."""
        width = (self.high - self.low) or 1.0
        return np.clip((values - self.low) / width, 0.0, 1.0)


@dataclass(frozen=True)
class Tile:
    """A rectangle of a view's values: rows × columns numbers, the first at (row, column). −∞ and NaN are masked."""

    row: int
    column: int
    values: Values

    def covers(self, rows: range, columns: range) -> bool:
        """Whether the tile holds every cell of rows × columns."""
        height, width = self.values.shape
        return (
            self.row <= rows.start
            and rows.stop <= self.row + height
            and self.column <= columns.start
            and columns.stop <= self.column + width
        )


@dataclass(frozen=True)
class View:
    """One step (of one head, where it has heads) as a matrix of rows × columns numbers.

    `window` computes and brings only the cells that are asked for; `edited` are the rows and columns of
    those that were set.
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

    @property
    def shape(self) -> tuple[int, int]:
        """Rows × columns."""
        return self.rows.size, self.columns.size

    def tile(self, rows: range, columns: range) -> Tile:
        """The cells of rows × columns, cut to the matrix."""
        rows, columns = _cut(rows, self.rows.size), _cut(columns, self.columns.size)
        empty = not rows or not columns
        values = np.zeros((len(rows), len(columns))) if empty else self.window(rows, columns)
        return Tile(rows.start, columns.start, values)


def window_of(values: Values) -> Callable[[range, range], Values]:
    """The window of a view whose values are all there, rows × columns."""
    return lambda rows, columns: values[rows.start : rows.stop, columns.start : columns.stop]


def _cut(wanted: range, size: int) -> range:
    """The part of a range that is there; of one that lies outside an empty one at the end."""
    start = min(max(wanted.start, 0), size)
    return range(start, max(min(wanted.stop, size), start))
