"""Values that are looked up or copied: rows of tables, heads side by side, numbers from the tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from tui_transformer.engine.explanation import Source
from tui_transformer.engine.ops import Embed
from tui_transformer.views.inside.cell import Cell, around, factor, written
from tui_transformer.views.inside.general import number
from tui_transformer.views.inside.parts import Bar, Bars, Equation, Note, NumberRow, NumberRows, Part

ROWS = 5
"""Rows of a table that are drawn around the one that is looked up."""

TOKENS = 12


def embedded(cell: Cell) -> Iterator[Part]:
    """The rows of the table around the one of the ID."""
    op = cast(Embed, cell.op)
    ids, table = cell.sources
    token, columns = int(ids.cell(cell.index[0])), cell.around(cell.own[-1].size)
    shown, place = around(token, table.shape[0], ROWS), cell.column - columns.start
    words = cell.axes[1][0]
    rows = tuple(
        NumberRow(
            cell.short(words, row),
            columns.start,
            table.read((range(row, row + 1), columns)).reshape(-1),
            place if row == token else None,
            table.operand(row, cell.column) if row == token else None,
        )
        for row in shown
    )
    signs = tuple("▸" if row == token else "" for row in shown)
    unknown = token == op.silent
    yield Note(
        f"The {op.ids} {token} stands for words outside the vocabulary: its row is left out, the vector is 0."
        if unknown
        else f"The {op.ids} {token} is the number of a row of the table: the row is copied, nothing is computed."
    )
    yield NumberRows("The table around that row", rows, signs)
    yield from map(number, cell.values)
    scale = f" · {written(op.scale)}" * (op.scale != 1.0) + " · 0" * unknown
    value = factor(table.cell(token, cell.column)) if scale else written(table.cell(token, cell.column))
    yield Equation(f"E[{token}, {cell.column}]{f' = {value}{scale}' if scale else ''} = {written(cell.result)}")


def merged(cell: Cell) -> Iterator[Part]:
    """Which head and column of it a column is."""
    heads, _, width = cell.sources[0].shape
    row, column = cell.index
    head, offset = divmod(column, width)
    columns = around(offset, width, 9)
    shown = around(head, heads, ROWS)
    rows = tuple(
        NumberRow(
            f"head {each}",
            columns.start,
            cell.sources[0].read((range(each, each + 1), range(row, row + 1), columns)).reshape(-1),
            offset - columns.start if each == head else None,
            cell.sources[0].operand(head, row, offset) if each == head else None,
        )
        for each in shown
    )
    yield Note(f"The rows of the {heads} heads are laid side by side, {width} columns each: nothing is computed.")
    yield NumberRows("The heads' rows of this token", rows, tuple("▸" if each == head else "" for each in shown))
    yield from map(number, cell.values)
    yield Equation(f"column {column} = {head} · {width} + {offset}: {written(cell.result)}")


def copied(cell: Cell) -> Iterator[Part]:
    """A row that is kept, or a matrix that is given."""
    values = cell.values
    source = values[0].source
    yield Note("The number is not computed here: it is the one that is named.")
    if source is not None:
        inputs = next(each for each in cell.sources if each.name == source.name)
        yield _own_row(inputs, source.index)
    yield from map(number, values)
    yield Equation(f"{values[0].symbol} = {written(cell.result)}")


def _own_row(source: Source, index: tuple[int, ...]) -> NumberRows:
    columns = around(index[-1], source.shape[-1], 9)
    region = (*(range(i, i + 1) for i in index[:-1]), columns)
    row = NumberRow(
        "row", columns.start, source.read(region).reshape(-1), index[-1] - columns.start, source.operand(*index)
    )
    return NumberRows("The row around the cell", (row,), ("",))


def given(cell: Cell) -> Iterator[Part]:
    """The tokens with their IDs."""
    source, axis = cell.sources[0], cell.own[-1]
    shown = around(cell.column, axis.size, TOKENS)
    numbers = source.read((*(range(i, i + 1) for i in cell.index[:-1]), shown)).reshape(-1)
    bars = tuple(
        Bar(cell.short(axis, k), (float(value),), k == cell.column) for k, value in zip(shown, numbers, strict=True)
    )
    yield Note("The tokenizer gives every token the number that the vocabulary has for it.")
    yield Bars("The tokens", ("ID",), bars, axis.size - len(shown), float(np.nan))
    yield Equation(f"{cell.named(axis, cell.column)} has the ID {written(cell.result)}")
