"""The inside of any operation, from the terms that it explains its cells by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.engine.explanation import Factor, Operand, Sum, Value
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.views.inside.cell import Cell, factor, largest, written
from tui_transformer.views.inside.parts import Bar, Bars, Equation, Number, Part, Product, Side


def general(cell: Cell) -> Iterator[Part]:
    """Every sum as a product or bars, every number with its name, and the value that they give."""
    for item in cell.explanation.items:
        if isinstance(item, Value):
            yield number(item)
        elif len(item.factors) > 1:
            yield product_of(item, *(short_name(each.name) for each in item.factors[:2]))
        else:
            yield bars_of(item)
    yield Equation(f"{cell.explanation.formula or 'the cell'} = {written(cell.result)}")


def number(value: Value) -> Number:
    """A single number."""
    name = value.source.name if value.source is not None else ""
    return Number(value.symbol or short_name(name), value.value, value.note, value.source)


def product_of(total: Sum, row: str, column: str) -> Product:
    """A sum of products of two operands each."""
    first, second = total.factors[:2]
    shown = largest(total.contributions)
    sides = (Side(row, first.values, _operands(first, shown)), Side(column, second.values, _operands(second, shown)))
    return Product(*sides, labels(first), shown, total.contributions)


def bars_of(total: Sum, own: int | None = None) -> Bars:
    """A sum of terms that have one operand each."""
    values, added = total.factors[0].values, total.contributions
    shown = largest(added, own)
    names = labels(total.factors[0])
    bars = tuple(
        Bar(names[k], (float(values[k]), float(added[k])), k == own, total.factors[0].operand(k)) for k in shown
    )
    rest = float(np.delete(added, shown).sum()) if len(shown) < len(added) else 0.0
    return Bars(total.title, ("x", total.unit), bars, len(added) - len(shown), rest)


def labels(operands: Factor) -> tuple[str, ...]:
    """Labels of the terms: the indices that change from one to the next."""
    places = [operands.place(k) for k in range(len(operands.values))]
    varying = [i for i in range(len(places[0])) if len({place[i] for place in places}) > 1] if places else []
    return tuple(" ".join(str(place[i]) for i in varying or [-1]) for place in places)


def bracketed(total: Sum) -> str:
    """A sum that is drawn above, with its value."""
    return f"{total.title} = {factor(total.total)}"


def short_name(name: str) -> str:
    """The last two parts of a dotted name, enough to recognise it where there is little room."""
    own = name.removeprefix(GRADIENT)
    return ("" if own == name else "∂ ") + ".".join(own.split(".")[-2:])


def _operands(side: Factor, shown: tuple[int, ...]) -> tuple[Operand, ...]:
    return tuple(side.operand(k) for k in shown)
