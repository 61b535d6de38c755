"""From scores to shares and from shares to values: division, mask, softmax, weighted rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.explanation import Factor, Floats
from tui_transformer.engine.ops import Scale
from tui_transformer.views.inside.cell import MOST, Cell, around, factor, largest, written
from tui_transformer.views.inside.general import number
from tui_transformer.views.inside.parts import Allowed, Bar, Bars, Equation, Note, Number, Part, Weighted

SIGHT = 9
"""Queries and keys that are drawn of a mask."""


def scaled(cell: Cell) -> Iterator[Part]:
    """The row before and after it is multiplied."""
    op = cast(Scale, cell.op)
    before, columns = _row(cell, 0)
    bars = _bars(cell, columns, lambda k: (float(before[k]), float(before[k] * op.factor)))
    yield Note("Every number of the row is multiplied by the same factor, so that the order stays.")
    yield Bars("The row, before and after", (op.of, op.expression), bars, len(before) - len(bars))
    value = float(before[cell.column])
    yield from map(number, cell.values)
    yield Equation(f"{factor(value)} · {written(op.factor)} = {written(cell.result)}")


def masked(cell: Cell) -> Iterator[Part]:
    """Who may look at whom, and the row with what is hidden."""
    _, row, column = cell.index
    rows, columns = (around(place, axis.size, SIGHT) for place, axis in zip((row, column), cell.own[-2:], strict=True))
    seen = np.array([[_may_look(cell, query, key) for key in columns] for query in rows])
    queries, keys = (
        tuple(cell.short(axis, i) for i in part) for axis, part in zip(cell.own[-2:], (rows, columns), strict=True)
    )
    yield Note("A score of −∞ becomes a weight of exactly 0, since e^(−∞) = 0: the key is not seen.")
    yield Allowed(queries, keys, seen, (row - rows.start, column - columns.start))
    yield from map(number, cell.values)
    score = cell.value("score")
    kept = "kept" if math.isfinite(cell.result) or cell.result == score else "hidden"
    yield Equation(f"{written(score)} is {kept}: {written(cell.result)}")


def _may_look(cell: Cell, query: int, key: int) -> bool:
    """Whether the mask lets a query look at a key: its own working says so."""
    working = cell.op.explain((cell.index[0], query, key), *cell.sources)
    return not any(item.value == -math.inf for item in working.items[1:])  # type: ignore[union-attr]


def shares(cell: Cell) -> Iterator[Part]:
    """Every score of the row, its exponential and its share."""
    if not cell.sums:  # no key is visible
        yield Note("No key is visible: the row stays 0 instead of 0 ÷ 0.")
        yield from map(number, cell.values)
        yield Equation(f"weight = {written(cell.result)}")
        return
    total = cell.sums[0]
    row, powers = total.factors[0], total.contributions
    sink = next((value for value in cell.values if value.symbol == "+ e^(sink − max)"), None)
    whole = total.total + (sink.value if sink is not None else 0.0)
    yield Note("e^(s − max) makes every score positive, the largest 1; divided by their sum, the row sums to 1.")
    yield _exponentials(cell, row, powers, whole)
    if sink is not None:
        yield Number("sink", sink.value, "e^(sink − max), which no key gets")
    top = max(float(row.values.max()), *(value.value for value in cell.values if value.symbol == "sink"), -math.inf)
    score, power = float(row.values[cell.column]), float(powers[cell.column])
    parts = f"{written(total.total)}" if sink is None else f"({written(total.total)} + {written(sink.value)})"
    yield Number("max", top, "the row's largest score")
    yield Number("Σ e^(s − max)", whole)
    yield Equation(
        f"e^({written(score)} − {factor(top)}) ÷ {parts} = {written(power)} ÷ {written(whole)} = {written(cell.result)}"
    )


def _exponentials(cell: Cell, row: Factor, powers: Floats, whole: float) -> Bars:
    shown = largest(powers, cell.column)
    bars = tuple(
        Bar(
            cell.short(cell.own[-1], k),
            (float(row.values[k]), float(powers[k]), float(powers[k] / whole)),
            k == cell.column,
            row.operand(k),
        )
        for k in shown
    )
    rest = float(np.delete(powers, shown).sum() / whole) if len(shown) < len(powers) else 0.0
    return Bars("The row", ("s", "e^(s − max)", "÷ Σ"), bars, len(powers) - len(shown), rest)


def context(cell: Cell) -> Iterator[Part]:
    """The rows of V, each as strong as its weight."""
    total, value = cell.sums[0], cell.sources[1]
    group = total.factors[1].place(0)[0]
    weights = total.factors[0]
    yield Note("Each row of V counts as much as its weight; added up they are what the head brings to this token.")
    yield _weighted(
        "weight · row of V",
        cell,
        weights.values,
        lambda rows, columns: value.read((range(group, group + 1), rows, columns))[0],
        (weights, total.factors[1]),
        cell.axes[1][-2],
        value.shape[-1],
    )
    yield Equation(f"Σ weight · v = {written(cell.result)}")


def pooled(cell: Cell) -> Iterator[Part]:
    """The rows of the tokens, each as strong as its share."""
    x, total = cell.sources[0], cell.sums[0]
    values = total.factors[0].values
    own = np.divide(total.contributions, values, out=np.zeros_like(values), where=values != 0)
    yield Note("The rows of the tokens become one: each counts as much as its share.")
    yield _weighted(
        "share · row of x",
        cell,
        own,
        lambda rows, columns: x.read((rows, columns)),
        (total.factors[1], total.factors[0]),
        cell.axes[0][0],
        x.shape[-1],
    )
    yield Equation(f"{cell.op.formula} = {written(cell.result)}")


def _weighted(
    title: str,
    cell: Cell,
    shares: Floats,
    read: Callable[[range, range], Floats],
    factors: tuple[Factor, Factor],
    axis: Axis,
    width: int,
) -> Weighted:
    columns, shown = cell.around(width), largest(shares)
    every = read(range(len(shares)), columns)
    return Weighted(
        title,
        tuple(cell.short(axis, k) for k in shown),
        shares[list(shown)],
        every[list(shown)],
        shares @ every,
        columns.start,
        cell.column - columns.start,
        len(shares) - len(shown),
        tuple((factors[0].operand(k), factors[1].operand(k)) for k in shown),
    )


def routed(cell: Cell) -> Iterator[Part]:
    """Every expert's logit and its exponential; an expert that is not among the largest has no share."""
    source = cell.sources[0]
    row = source.factor(cell.index[0], None)
    powers = np.exp(row.values - row.values.max())
    shown = largest(powers, cell.column)
    bars = tuple(
        Bar(f"expert {k}", (float(row.values[k]), float(powers[k])), k == cell.column, row.operand(k)) for k in shown
    )
    yield Note("A router gives every expert a number; only those with the largest are asked, with these shares.")
    yield Bars("The experts", ("z", "e^(z − max)"), bars, len(powers) - len(shown))
    yield from map(number, cell.values)
    if not cell.sums:
        yield Equation(f"not chosen: {written(cell.result)}")
        return
    spelled = f"{written(float(powers[cell.column]))} ÷ {written(cell.sums[0].total)}"
    yield Equation(f"{spelled} = {written(cell.result)}")


def mixed(cell: Cell) -> Iterator[Part]:
    """The output of every chosen expert, times its share."""
    values = cell.values
    pairs = list(zip(values[::2], values[1::2], strict=True))
    bars = tuple(
        Bar(
            share.symbol.removeprefix("share of "),
            (share.value, said.value, share.value * said.value),
            source=said.source,
        )
        for share, said in pairs[:MOST]
    )
    yield Note("What the chosen experts say is added up, each as strong as its share.")
    yield Bars("The experts", ("share", "output", "share · output"), bars, max(len(pairs) - MOST, 0))
    spelled = " + ".join(f"{written(share.value)} · {factor(said.value)}" for share, said in pairs[:MOST])
    yield Equation(f"{spelled or 'no expert'} = {written(cell.result)}")


def _row(cell: Cell, place: int) -> tuple[Floats, range]:
    source = cell.sources[place]
    whole = cell.row_of(source, range(source.shape[-1]))
    return whole, around(cell.column, len(whole), MOST)


def _bars(cell: Cell, columns: range, values: Callable[[int], tuple[float, ...]]) -> tuple[Bar, ...]:
    return tuple(
        Bar(cell.short(cell.own[-1], k), values(k), k == cell.column, cell.sources[0].operand(*cell.index[:-1], k))
        for k in columns
    )
