"""What is done row by row: sums, norms, functions of one number, rows of tables, and values that are copied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from tui_transformer.engine.explanation import Index, Source
from tui_transformer.engine.ops import Add, Changed, Dropout, Embed, Op, Subtract
from tui_transformer.views.inside.cell import COLUMNS, Cell, bars_of, factor, short_name, written
from tui_transformer.views.inside.parts import Curve, Equation, Note, NumberRow, NumberRows, Part
from tui_transformer.views.view import around

REACH, SAMPLES = 4.0, 161
"""How far a curve goes on both sides of 0, where the point is not further away, and its points."""

ROWS, TOKENS = 5, 12
"""Rows of a table that are drawn around the one that is looked up, and tokens with their IDs."""


# Two or more rows that become one, number by number


_NUMBER_BY_NUMBER: Mapping[type[Op], tuple[str, str]] = {
    Add: ("+", "Two rows are added number by number: what was there stays, and something is added to it."),
    Changed: ("+−", "What is written and what was left, less what was there: what a change of features adds to it."),
    Subtract: ("−", "One row is taken from the other, number by number."),
    Dropout: ("·", "While a model learns, some numbers are set to 0 at random; the others grow to make up for it."),
}
_GATED = "·", "One row opens or closes the other: number by number the two are multiplied."


def number_by_number(cell: Cell) -> Iterator[Part]:
    """The rows above each other, and the row that they give."""
    sign, note = _NUMBER_BY_NUMBER.get(type(cell.op), _GATED)
    inputs = [
        (short_name(source.name), source, source.operand(*cell.index))
        for source in cell.sources
        if len(source.shape) == len(cell.index)
    ]
    yield Note(note)
    signs = [*sign, *sign[-1] * len(cell.values)]
    yield cell.rows_around("The rows around the cell", inputs, "result", ("", *signs[: len(inputs) - 1], "="))
    values = cell.values if type(cell.op) in _NUMBER_BY_NUMBER else (cell.values[0], cell.values[-1])
    first, *others = (factor(value.value) for value in values)
    terms = (f"{each} {other}" for each, other in zip(signs, others, strict=False))
    yield from cell.in_numbers(" ".join((first, *terms)))


# Norms


def centred(cell: Cell) -> Iterator[Part]:
    """Layer norm: mean taken off, divided by the spread, scaled and shifted."""
    yield from _norm(
        cell, "The row is moved to mean 0 and stretched to spread 1; γ and β then set its scale and place."
    )
    yield from _scaled(cell, _from_mean(cell, "x"), cell.sums[0].total, "(x − μ) ÷ √(σ² + ε)")


def by_size(cell: Cell) -> Iterator[Part]:
    """RMS norm: divided by the root of the mean square, scaled."""
    yield from _norm(cell, "The row is divided by its own size, the root of its mean square; γ then sets the scale.")
    yield from _scaled(cell, written(cell.value("x")), cell.sums[0].total, "x ÷ √(mean x² + ε)")


def to_unit(cell: Cell) -> Iterator[Part]:
    """Unit length: divided by the root of the sum of squares."""
    yield from _norm(cell, "The vector is divided by its length: the product of two such vectors is their cosine.")
    yield cell.equation(f"{written(cell.value('x'))} ÷ √{written(cell.sums[0].total)}")


def of_sum(cell: Cell) -> Iterator[Part]:
    """The norm of a sum: the parts, then as a layer norm."""
    yield Note("The parts are added first; the row that they give is moved to mean 0 and stretched to spread 1.")
    yield from cell.numbers()
    yield from _scaled(cell, _from_mean(cell, "sum"), cell.value("σ²"), "(sum − μ) ÷ √(σ² + ε)")


def sized(cell: Cell) -> Iterator[Part]:
    """Brought to one size, or taken back from it."""
    yield Note("A dictionary reads vectors of one size; what it writes is taken back to the size of what it read.")
    yield bars_of(cell.sums[0], cell.column)
    yield from cell.in_numbers(cell.op.formula)


def _from_mean(cell: Cell, symbol: str) -> str:
    return f"({written(cell.value(symbol))} − {factor(cell.value('μ'))})"


def _scaled(cell: Cell, distance: str, spread: float, normal: str) -> Iterator[Equation]:
    """The number before γ and β, then the cell."""
    yield Equation(f"{distance} ÷ √({written(spread)} + {written(cell.value('ε'))}) = {written(cell.value(normal))}")
    text = f"{factor(cell.value(normal))} · {factor(cell.value('· γ'))}"
    has_shift = any(value.symbol == "+ β" for value in cell.values)
    yield cell.equation(f"{text} + {factor(cell.value('+ β'))}" if has_shift else text)


def _norm(cell: Cell, note: str) -> Iterator[Part]:
    """The row before and after, the terms of its size, and the numbers."""
    yield Note(note)
    operand = next((value.source for value in cell.values if value.symbol == "x"), None)
    inputs = [("x", cell.sources[0], operand)]
    yield cell.rows_around("The row around the cell, before and after", inputs, "norm", ("", "→"))
    yield bars_of(cell.sums[0], cell.column if len(cell.sums[0]) == cell.own[-1].size else None)
    yield from cell.numbers()


# Functions of one number


def activation(cell: Cell) -> Iterator[Part]:
    """The curve of the function with the point that the cell is, worked out by the operation itself."""
    x = cell.sources[0].cell(*cell.index)
    reach = max(REACH, 1.25 * abs(x)) if math.isfinite(x) else REACH
    places = np.linspace(-reach, reach, SAMPLES)
    source = Source("x", (1, SAMPLES), lambda region: places[None, region[1].start : region[1].stop])
    heights = np.array([cell.op.explain((0, k), source).result for k in range(SAMPLES)])
    yield Note("The same function for every number by itself: what goes in lies across, what comes out is the height.")
    yield Curve(cell.op.formula, "x", places, heights, (x, cell.result))
    values = cell.values
    if len(values) == 2 and values[0].symbol == "x":
        yield from cell.in_numbers(f"{factor(x)} · {written(values[1].value)}")
        return
    named = [f"{value.symbol} = {written(value.value)}" for value in values] if len(values) > 1 else []
    yield from cell.in_numbers(f"{cell.op.formula} for {', '.join(named) or f'x = {written(x)}'}")


def by_feature(cell: Cell) -> Iterator[Part]:
    """A feature: its pre-activation, and what it is compared with."""
    yield Note("Few features are active at a token: the others are 0, and nothing of them is written.")
    yield from cell.in_numbers(cell.op.formula)


# Rows that are looked up, laid side by side, or copied


def embedded(cell: Cell) -> Iterator[Part]:
    """The rows of the table around the one of the ID."""
    op = cast(Embed, cell.op)
    ids, table = cell.sources
    token, columns = int(ids.cell(cell.index[0])), cell.around(cell.own[-1].size)
    unknown = token == op.silent
    yield Note(
        f"The {op.ids} {token} stands for words outside the vocabulary: its row is left out, the vector is 0."
        if unknown
        else f"The {op.ids} {token} is the number of a row of the table: the row is copied, nothing is computed."
    )
    names = {row: cell.short(cell.axes[1][0], row) for row in around(token, table.shape[0], ROWS)}
    yield _rows_of("The table around that row", table, (token, cell.column), columns, names)
    number = table.cell(token, cell.column)
    scale = f" · {written(op.scale)}" * (op.scale != 1.0) + " · 0" * unknown
    yield from cell.in_numbers(f"E[{token}, {cell.column}]" + (f" = {factor(number)}{scale}" if scale else ""))


def merged(cell: Cell) -> Iterator[Part]:
    """Which head and column of it a column is."""
    heads, _, width = cell.sources[0].shape
    row, column = cell.index
    head, offset = divmod(column, width)
    columns = around(offset, width, COLUMNS)
    yield Note(f"The rows of the {heads} heads are laid side by side, {width} columns each: nothing is computed.")
    names = {each: f"head {each}" for each in around(head, heads, ROWS)}
    yield _rows_of("The heads' rows of this token", cell.sources[0], (head, row, offset), columns, names)
    yield from cell.numbers()
    yield Equation(f"column {column} = {head} · {width} + {offset}: {written(cell.result)}")


def _rows_of(title: str, source: Source, index: Index, columns: range, names: Mapping[int, str]) -> NumberRows:
    """Rows of an input by their names, and of the one at an index the number there marked."""
    own, *between, column = index
    lines = []
    for each, name in names.items():
        values = source.read((*(range(i, i + 1) for i in (each, *between)), columns)).reshape(-1)
        marked, operand = (column - columns.start, source.operand(*index)) if each == own else (None, None)
        lines.append(NumberRow(name, columns.start, values, marked, operand))
    return NumberRows(title, tuple(lines), tuple("▸" if each == own else "" for each in names))


def copied(cell: Cell) -> Iterator[Part]:
    """A row that is kept, or a matrix that is given."""
    yield Note("The number is not computed here: it is the one that is named.")
    operand = cell.values[0].source
    if operand is not None:
        source, index = next(each for each in cell.sources if each.name == operand.name), operand.index
        columns = around(index[-1], source.shape[-1], COLUMNS)
        numbers = source.read((*(range(i, i + 1) for i in index[:-1]), columns)).reshape(-1)
        row = NumberRow("row", columns.start, numbers, index[-1] - columns.start, source.operand(*index))
        yield NumberRows("The row around the cell", (row,), ("",))
    yield from cell.in_numbers(cell.values[0].symbol)


def given(cell: Cell) -> Iterator[Part]:
    """The tokens with their IDs."""
    axis = cell.own[-1]
    shown = around(cell.column, axis.size, TOKENS)
    numbers = cell.row_of(cell.sources[0], shown)
    yield Note("The tokenizer gives every token the number that the vocabulary has for it.")
    yield cell.bars("The tokens", ("ID",), shown, lambda k: (float(numbers[k - shown.start]),), rest=math.nan)
    yield Equation(f"{cell.named(axis, cell.column)} has the ID {written(cell.result)}")
