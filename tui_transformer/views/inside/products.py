"""Matrix products: a row on the left, a column above, their products running into the cell."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.engine.explanation import Value
from tui_transformer.engine.ops import Project
from tui_transformer.views.inside.cell import Cell, factor, written
from tui_transformer.views.inside.general import number, product_of
from tui_transformer.views.inside.parts import Equation, Note, Part


def scores(cell: Cell) -> Iterator[Part]:
    """The row of Q on the left, the column of Kᵀ above."""
    query, key = cell.own[-2:]
    _, row, column = cell.index
    names = f"Q, row of {cell.named(query, row)}", f"Kᵀ, column of {cell.named(key, column)}"
    product = product_of(cell.sums[0], *names)
    yield Note("The query of a row and the key of a column, number by number: where both are large, so is the product.")
    yield product
    yield Equation(f"q · k = {_sum(product.products.tolist())} = {written(cell.result)}")


def with_weight(cell: Cell) -> Iterator[Part]:
    """The row of x on the left, the column of W above, and the bias."""
    letter = cell.op.letter if isinstance(cell.op, Project) else ""
    weight = f"W_{letter}" if letter else "W"
    yield from _weighed(cell, weight, "Every output column has a column of weights: the row is multiplied by it.")


def words(cell: Cell) -> Iterator[Part]:
    """The row of x on the left, the word's row of the embedding above."""
    yield from _weighed(cell, "Eᵀ", "The row is multiplied by the embedding of a word: how well do the two fit?")


def _weighed(cell: Cell, weight: str, says: str) -> Iterator[Part]:
    row = f"x, row of {cell.named(cell.own[-2], cell.index[-2])}" if len(cell.own) > 1 else "x"
    if isinstance(cell.op, Project):
        row = f"x, row of {cell.named(cell.axes[0][0], cell.index[-2])}"
    column = f"{weight}, column of {cell.named(cell.own[-1], cell.column)}"
    product = product_of(cell.sums[0], row, column)
    yield Note(says)
    yield product
    rest = cell.values
    yield from map(number, rest)
    start = written(product.total) if rest else _sum(product.products.tolist())
    yield Equation(f"{_then(start, rest)} = {written(cell.result)}")


def _then(start: str, values: tuple[Value, ...]) -> str:
    """A sum and the operations that follow it, as text."""
    text = start
    for value in values:
        sign = value.symbol[0]
        text += f" {sign} {factor(value.value)}"
    return text


def _sum(values: list[float]) -> str:
    most = 4
    parts = " + ".join(factor(round_to(value)) for value in values[:most])
    return f"{parts} + …" if len(values) > most else parts


def round_to(value: float) -> float:
    """A value with four significant digits, as a term of a sum that is shown in full beside it."""
    return float(f"{value:.4g}")
