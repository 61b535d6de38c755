"""The parts that the inside of a step is drawn of: values with their labels, without saying how they are drawn."""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.explanation import Explanation, Floats, Operand
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class Note:
    """A line of words."""

    text: str


@dataclass(frozen=True)
class Equation:
    """Arithmetic that can be checked with a calculator; the last one gives the cell."""

    text: str


@dataclass(frozen=True)
class Number:
    """A named number on the way to the cell, and the cell that it was read from, if it was."""

    name: str
    value: float
    note: str = ""
    source: Operand | None = None


@dataclass(frozen=True, eq=False)
class Side:
    """A row or a column that takes part in a product: all of it, and where the terms that are drawn were read."""

    name: str
    values: Floats
    sources: tuple[Operand, ...]


@dataclass(frozen=True, eq=False)
class Product:
    """A row times a column: the row lies at the left, the column stands above, their products run into the cell.

    Every term has a label and a product; those in `shown` are drawn, in order.
    """

    row: Side
    column: Side
    labels: tuple[str, ...]
    shown: tuple[int, ...]
    products: Floats

    @property
    def total(self) -> float:
        """The sum of all products."""
        return float(self.products.sum())

    @property
    def others(self) -> int:
        """Terms that are not drawn one by one."""
        return len(self.products) - len(self.shown)

    @property
    def rest(self) -> float:
        """The sum of those."""
        return float(np.delete(self.products, self.shown).sum()) if self.others else 0.0


@dataclass(frozen=True, eq=False)
class Bar:
    """A line of a table: what it is of, a number for each column (NaN for none), and where it was read.

    The last number is drawn as a bar; `marked` is the line of the cell.
    """

    label: str
    values: tuple[float, ...]
    marked: bool = False
    source: Operand | None = None


@dataclass(frozen=True, eq=False)
class Bars:
    """Numbers of several things below each other; `others` are not drawn, and `rest` is the sum of their last ones."""

    title: str
    columns: tuple[str, ...]
    bars: tuple[Bar, ...]
    others: int = 0
    rest: float = 0.0


@dataclass(frozen=True, eq=False)
class NumberRow:
    """A row of numbers from column `first` on; one of them may be marked, with the cell that it was read from."""

    name: str
    first: int
    values: Floats
    marked: int | None = None
    source: Operand | None = None


@dataclass(frozen=True, eq=False)
class NumberRows:
    """Rows of numbers above each other, the same columns under each other; a sign stands before each."""

    title: str
    rows: tuple[NumberRow, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Weighted:
    """Rows, each as strong as its share, added up into one; from column `first` on, of which the cell's is `marked`.

    The total is their weighted sum, with the `others` that are not drawn. The sources are the share and the value of
    each row in the cell's column.
    """

    title: str
    labels: tuple[str, ...]
    shares: Floats
    rows: Floats
    total: Floats
    first: int
    marked: int
    others: int
    sources: tuple[tuple[Operand, Operand], ...]

    @property
    def rest(self) -> float:
        """Sum of the rows that are not drawn."""
        return float(self.total[self.marked] - (self.shares * self.rows[:, self.marked]).sum())


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of `x_name`, its values y at x, and the point of it that the cell is."""

    name: str
    x_name: str
    x: Floats
    y: Floats
    point: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Turn:
    """A pair of named numbers as a point of the plane, before and after it is turned by an angle in radians."""

    before: tuple[float, float]
    after: tuple[float, float]
    angle: float
    names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Allowed:
    """Which query (row) may look at which key (column), around the cell, which is marked."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    seen: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    marked: tuple[int, int]


Part = Note | Equation | Number | Product | Bars | NumberRows | Weighted | Curve | Turn | Allowed


@dataclass(frozen=True, eq=False)
class Inside:
    """The inside of a cell of a step, which is given in words (`“where” → “?” in head 2`).

    The parts go from the operands down to the equation that gives the cell, as the explanation works it out again.
    """

    explanation: Explanation
    cell: str
    parts: tuple[Part, ...]
