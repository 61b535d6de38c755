"""The cell that is looked into, with its operation, inputs and labels; and the parts that any operation is drawn by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tui_transformer.engine.axis import Axes, Axis
from tui_transformer.engine.explanation import Explanation, Factor, Floats, Index, Operand, Source, Sum, Value
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Op
from tui_transformer.records import dataclass
from tui_transformer.views.inside.parts import Bar, Bars, Equation, Number, NumberRow, NumberRows, Part, Product, Side
from tui_transformer.views.step_view import Labels, placed
from tui_transformer.views.view import around

MOST = 12
"""Terms and rows that are drawn one by one."""

COLUMNS = 9
"""Columns of a row that are drawn around the cell's own."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell of a step: `axes` are those of every input, `own` those of the step."""

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

    @property
    def result(self) -> float:
        """The cell, from its terms."""
        return self.explanation.recomputed

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

    # Words

    def named(self, axis: Axis, index: int) -> str:
        """A place on an axis: `“where”`, or `column 3`."""
        label = self.labels.of(axis)(index)
        return f"“{label}”" if label != str(index) else f"{axis.name or 'column'} {index}"

    def short(self, axis: Axis, index: int) -> str:
        """The same in as few characters: `where 0`, `3`."""
        return placed(self.labels.of(axis)(index), index)

    @property
    def words(self) -> str:
        """The cell in words."""
        *heads, row, column = ((None, *self.index) if len(self.index) == 1 else self.index)[-3:]
        row_name = "" if row is None else self.named(self.own[-2], row)
        column_name = self.named(self.own[-1], column) if self.own[-1].size > 1 else ""
        head = f" in head {heads[0]}" if heads and self.own[0].size > 1 else ""
        return " → ".join(filter(None, (row_name, column_name))) + head

    # Rows

    def around(self, size: int) -> range:
        """The columns around the cell's, of so many."""
        return around(self.column, size, COLUMNS)

    def row_of(self, source: Source, columns: range) -> Floats:
        """The cell's own row of an input of the same shape."""
        return source.read((*(range(i, i + 1) for i in self.index[:-1]), columns)).reshape(-1)

    def rows_around(
        self, title: str, inputs: Sequence[tuple[str, Source, Operand | None]], result: str, signs: tuple[str, ...]
    ) -> NumberRows:
        """The rows of inputs, and the one that they give, around the cell's column."""
        columns = self.around(self.own[-1].size)
        at, first = self.column - columns.start, columns.start
        rows = [NumberRow(name, first, self.row_of(each, columns), at, operand) for name, each, operand in inputs]
        after = np.array([self.op.explain((*self.index[:-1], k), *self.sources).result for k in columns])
        return NumberRows(title, (*rows, NumberRow(result, first, after, at)), signs)

    # Parts

    def bars(
        self,
        title: str,
        columns: tuple[str, ...],
        shown: Sequence[int],
        numbers: Callable[[int], tuple[float, ...]],
        operand: Callable[[int], Operand | None] = lambda _: None,
        rest: float = 0.0,
    ) -> Bars:
        """Numbers of some places along the last axis; the others there add up to the rest."""
        axis = self.own[-1]
        bars = (Bar(self.short(axis, k), numbers(k), k == self.column, operand(k)) for k in shown)
        return Bars(title, columns, tuple(bars), axis.size - len(shown), rest)

    def numbers(self) -> Iterator[Number]:
        """Every single number with its name, and the cell that it was read from."""
        for value in self.values:
            name = value.source.name if value.source is not None else ""
            yield Number(value.symbol or short_name(name), value.value, value.note, value.source)

    def in_numbers(self, working: str) -> Iterator[Number | Equation]:
        """Every single number, then the working that gives the cell."""
        yield from self.numbers()
        yield self.equation(working)

    def equation(self, working: str) -> Equation:
        """The working that gives the cell."""
        return Equation(f"{working} = {written(self.result)}")


def general(cell: Cell) -> Iterator[Part]:
    """Of any operation every sum as a product or bars, every number with its name, and the value that they give."""
    numbers = cell.numbers()
    for item in cell.explanation.items:
        if isinstance(item, Value):
            yield next(numbers)
        elif len(item.factors) > 1:
            yield product_of(item, *(short_name(each.name) for each in item.factors[:2]))
        else:
            yield bars_of(item)
    yield cell.equation(cell.explanation.formula or "the cell")


def product_of(total: Sum, row: str, column: str) -> Product:
    """A sum of products of two operands each."""
    shown = largest(total.contributions)
    first, second = (
        Side(name, each.values, tuple(each.operand(k) for k in shown))
        for name, each in zip((row, column), total.factors[:2], strict=True)
    )
    return Product(first, second, term_labels(total.factors[0]), shown, total.contributions)


def bars_of(total: Sum, own: int | None = None) -> Bars:
    """A sum of terms that have one operand each."""
    operands, added = total.factors[0], total.contributions
    shown, names = largest(added, own), term_labels(operands)
    bars = tuple(
        Bar(names[k], (float(operands.values[k]), float(added[k])), k == own, operands.operand(k)) for k in shown
    )
    return Bars(total.title, ("x", total.unit), bars, len(added) - len(shown), rest_of(added, shown))


def term_labels(operands: Factor) -> tuple[str, ...]:
    """Labels of the terms: the indices that change from one to the next."""
    places = [operands.place(k) for k in range(len(operands.values))]
    varying = [i for i in range(len(places[0])) if len({place[i] for place in places}) > 1] if places else []
    return tuple(" ".join(str(place[i]) for i in varying or [-1]) for place in places)


def largest(values: Floats, own: int | None = None) -> tuple[int, ...]:
    """The places of the values farthest from 0 in their order, always with the own one."""
    if len(values) <= MOST:
        return tuple(range(len(values)))
    size = np.where(np.isfinite(values), np.abs(values), 0.0)
    if own is not None:
        size[own] = math.inf
    return tuple(sorted(np.argsort(-size, kind="stable")[:MOST].tolist()))


def rest_of(values: Floats, shown: tuple[int, ...]) -> float:
    """The sum of the values that are not shown."""
    return float(np.delete(values, shown).sum()) if len(shown) < len(values) else 0.0


def short_name(name: str) -> str:
    """The last two parts of a dotted name, enough to recognise it where there is little room."""
    own = name.removeprefix(GRADIENT)
    return ("" if own == name else "∂ ") + ".".join(own.split(".")[-2:])


def written(value: float, digits: int = 6) -> str:
    """A number with so many significant digits."""
    return "" if math.isnan(value) else spoken(value, digits)


def factor(value: float) -> str:
    """A number inside a product or difference: in brackets where it is below 0."""
    return f"({written(value)})" if value < 0 else written(value)
