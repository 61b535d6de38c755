"""Norms: the row before and after, its mean and spread, and the number that comes of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.engine.explanation import Floats
from tui_transformer.views.inside.cell import Cell, factor, written
from tui_transformer.views.inside.general import bars_of, number
from tui_transformer.views.inside.parts import Equation, Note, NumberRow, NumberRows, Part


def centred(cell: Cell) -> Iterator[Part]:
    """Layer norm: mean taken off, divided by the spread, scaled and shifted."""
    yield Note("The row is moved to mean 0 and stretched to spread 1; γ and β then set its scale and place.")
    yield from _rows(cell)
    yield bars_of(cell.sums[0], cell.column)
    yield from map(number, cell.values)
    spread = f"√({written(cell.sums[0].total)} + {written(cell.value('ε'))})"
    x, mean = cell.value("x"), cell.value("μ")
    yield Equation(f"({written(x)} − {factor(mean)}) ÷ {spread} = {written(cell.value('(x − μ) ÷ √(σ² + ε)'))}")
    yield Equation(f"{_last(cell, '(x − μ) ÷ √(σ² + ε)')} = {written(cell.result)}")


def by_size(cell: Cell) -> Iterator[Part]:
    """RMS norm: divided by the root of the mean square, scaled."""
    yield Note("The row is divided by its own size, the root of its mean square; γ then sets the scale.")
    yield from _rows(cell)
    yield bars_of(cell.sums[0], cell.column if len(cell.sums[0]) == cell.own[-1].size else None)
    yield from map(number, cell.values)
    spread = f"√({written(cell.sums[0].total)} + {written(cell.value('ε'))})"
    yield Equation(f"{written(cell.value('x'))} ÷ {spread} = {written(cell.value('x ÷ √(mean x² + ε)'))}")
    yield Equation(f"{_last(cell, 'x ÷ √(mean x² + ε)')} = {written(cell.result)}")


def to_unit(cell: Cell) -> Iterator[Part]:
    """Unit length: divided by the root of the sum of squares."""
    yield Note("The vector is divided by its length: the product of two such vectors is their cosine.")
    yield from _rows(cell)
    yield bars_of(cell.sums[0], cell.column)
    yield from map(number, cell.values)
    yield Equation(f"{written(cell.value('x'))} ÷ √{written(cell.sums[0].total)} = {written(cell.result)}")


def of_sum(cell: Cell) -> Iterator[Part]:
    """The norm of a sum: the parts, then as a layer norm."""
    yield Note("The parts are added first; the row that they give is moved to mean 0 and stretched to spread 1.")
    yield from map(number, cell.values)
    spread = f"√({written(cell.value('σ²'))} + {written(cell.value('ε'))})"
    total, mean = cell.value("sum"), cell.value("μ")
    yield Equation(f"({written(total)} − {factor(mean)}) ÷ {spread} = {written(cell.value('(sum − μ) ÷ √(σ² + ε)'))}")
    yield Equation(f"{_last(cell, '(sum − μ) ÷ √(σ² + ε)')} = {written(cell.result)}")


def _last(cell: Cell, normal: str) -> str:
    symbols = [value.symbol for value in cell.values]
    text = f"{factor(cell.value(normal))} · {factor(cell.value('· γ'))}"
    return f"{text} + {factor(cell.value('+ β'))}" if "+ β" in symbols else text


def _rows(cell: Cell) -> Iterator[NumberRows]:
    """The row before, and after."""
    columns = cell.around(cell.own[-1].size)
    after = np.array([cell.op.explain((*cell.index[:-1], k), *cell.sources).result for k in columns])
    place = cell.column - columns.start
    before: Floats = cell.row_of(cell.sources[0], columns)
    source = next((value.source for value in cell.values if value.symbol == "x"), None)
    rows = (
        NumberRow("x", columns.start, before, place, source),
        NumberRow("norm", columns.start, after, place),
    )
    yield NumberRows("The row around the cell, before and after", rows, ("", "→"))
