"""The cell that is looked into: the operation, its inputs, the labels of all axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.axis import Axes, Axis, shape_of
from tui_transformer.engine.explanation import Explanation, Floats, Index, Source, Sum, Value
from tui_transformer.engine.ops import Op
from tui_transformer.engine.spoken import spoken
from tui_transformer.views.step_view import Labels, placed

MOST = 12
"""Terms and rows that are drawn one by one."""

COLUMNS = 9
"""Columns of a row that are drawn around the cell's own."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of a step.

    Attributes:
        op: The operation.
        index: The cell.
        explanation: Its terms.
        sources: The inputs.
        axes: Those of every input.
        own: The axes of the step.
        labels: Words for the indices.
    """

    op: Op
    index: Index
    explanation: Explanation
    sources: tuple[Source, ...]
    axes: tuple[Axes, ...]
    own: Axes
    labels: Labels

    @property
    def column(self) -> int:
        """The cell's place along the last axis."""
        return self.index[-1]

    def named(self, axis: Axis, index: int) -> str:
        """A place on an axis: `“where”`, or `column 3`."""
        label = self.labels.of(axis)(index)
        return f"“{label}”" if label != str(index) else f"{axis.name or 'column'} {index}"

    def short(self, axis: Axis, index: int) -> str:
        """The same in as few characters: `where 0`, `3`."""
        label = self.labels.of(axis)(index)
        return placed(label, index)

    @property
    def words(self) -> str:
        """The cell in words."""
        *heads, row, column = ((None, *self.index) if len(self.index) == 1 else self.index)[-3:]
        row_name = "" if row is None else self.named(self.own[-2], row)
        column_name = self.named(self.own[-1], column) if self.own[-1].size > 1 else ""
        head = f" in head {heads[0]}" if heads and self.own[0].size > 1 else ""
        return " → ".join(filter(None, (row_name, column_name))) + head

    # Its terms

    @property
    def sums(self) -> tuple[Sum, ...]:
        """The sums that the operation explains it by."""
        return tuple(item for item in self.explanation.items if isinstance(item, Sum))

    @property
    def values(self) -> tuple[Value, ...]:
        """The single numbers."""
        return tuple(item for item in self.explanation.items if isinstance(item, Value))

    def value(self, symbol: str) -> float:
        """A single number by its symbol."""
        return next(item.value for item in self.values if item.symbol == symbol)

    @property
    def result(self) -> float:
        """The cell, from its terms."""
        return self.explanation.recomputed

    # Parts of rows

    def around(self, size: int) -> range:
        """The columns around the cell's, of so many."""
        return around(self.column, size, COLUMNS)

    def row_of(self, source: Source, columns: range) -> Floats:
        """The cell's own row of an input of the same shape."""
        region = (*(range(i, i + 1) for i in self.index[:-1]), columns)
        return source.read(region).reshape(-1)


def around(place: int, size: int, most: int) -> range:
    """At most so many places around one, of so many."""
    first = min(max(place - most // 2, 0), max(size - most, 0))
    return range(first, min(first + most, size))


def largest(values: Floats, own: int | None = None) -> tuple[int, ...]:
    """The places of the values farthest from 0 in their order, always with the own one."""
    if len(values) <= MOST:
        return tuple(range(len(values)))
    size = np.where(np.isfinite(values), np.abs(values), 0.0)
    if own is not None:
        size[own] = math.inf
    return tuple(sorted(np.argsort(-size, kind="stable")[:MOST].tolist()))


def written(value: float, digits: int = 6) -> str:
    """A number with so many significant digits."""
    return "" if math.isnan(value) else spoken(value, digits)


def factor(value: float) -> str:
    """A number inside a product or difference: in brackets where it is below 0."""
    return f"({written(value)})" if value < 0 else written(value)


def shape(axes: Sequence[Axis]) -> str:
    """`9 × 8`."""
    return " × ".join(map(str, shape_of(tuple(axes))))
