"""Two or more matrices that become one, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.views.inside.cell import Cell, factor, written
from tui_transformer.views.inside.general import number, short_name
from tui_transformer.views.inside.parts import Equation, Note, NumberRow, NumberRows, Part


def added(cell: Cell) -> Iterator[Part]:
    """The rows above each other, and the row that they give."""
    yield Note("Two rows are added number by number: what was there stays, and something is added to it.")
    yield from _cell_by_cell(cell, "+")


def gated(cell: Cell) -> Iterator[Part]:
    """The gate, the hidden row, and their product."""
    yield Note("One row opens or closes the other: number by number the two are multiplied.")
    yield _number_rows(cell, "·")
    yield from map(number, cell.values)
    first, last = cell.values[0], cell.values[-1]
    spelled = f"{factor(first.value)} · {factor(last.value)}"
    yield Equation(f"{spelled} = {written(cell.result)}")


def dropped(cell: Cell) -> Iterator[Part]:
    """Values, which of them are kept, and what is left."""
    yield Note("While a model learns, some numbers are set to 0 at random; the others grow to make up for it.")
    yield from _cell_by_cell(cell, "·")


def _cell_by_cell(cell: Cell, sign: str) -> Iterator[Part]:
    yield _number_rows(cell, sign)
    yield from map(number, cell.values)
    yield Equation(f"{f' {sign} '.join(factor(value.value) for value in cell.values)} = {written(cell.result)}")


def _number_rows(cell: Cell, sign: str) -> NumberRows:
    columns = cell.around(cell.own[-1].size)
    place = cell.column - columns.start
    sources = [source for source in cell.sources if len(source.shape) == len(cell.index)]
    rows = [
        NumberRow(short_name(each.name), columns.start, cell.row_of(each, columns), place, each.operand(*cell.index))
        for each in sources
    ]
    after = np.array([cell.op.explain((*cell.index[:-1], k), *cell.sources).result for k in columns])
    result = NumberRow("result", columns.start, after, place)
    return NumberRows("The rows around the cell", (*rows, result), ("", *([sign] * (len(rows) - 1)), "="))
