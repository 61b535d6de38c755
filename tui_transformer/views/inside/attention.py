"""What mixes columns or tokens: products with Q, K and weights, scores and their shares, weighted rows, positions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import numpy as np

from tui_transformer.engine.explanation import Factor, Floats, Source
from tui_transformer.engine.ops import Project, Rotate, Scale, Unembed
from tui_transformer.views.inside.cell import MOST, Cell, factor, largest, product_of, rest_of, written
from tui_transformer.views.inside.parts import Allowed, Bar, Bars, Curve, Equation, Note, Number, Part, Turn, Weighted
from tui_transformer.views.view import around

SIGHT = 9
"""Queries and keys that are drawn of a mask."""

PLACES = 64
"""Places that a wave is drawn over, at least."""

SPELLED = 4
"""Terms of a sum that an equation spells out, each with four significant digits: the sum is shown in full beside it."""


# Matrix products: a row on the left, a column above, their products running into the cell


def scores(cell: Cell) -> Iterator[Part]:
    """The row of Q on the left, the column of Kᵀ above."""
    query, key = cell.own[-2:]
    _, row, column = cell.index
    names = f"Q, row of {cell.named(query, row)}", f"Kᵀ, column of {cell.named(key, column)}"
    product = product_of(cell.sums[0], *names)
    yield Note("The query of a row and the key of a column, number by number: where both are large, so is the product.")
    yield product
    yield cell.equation(f"q · k = {_spelled(product.products)}")


def with_weight(cell: Cell) -> Iterator[Part]:
    """The row of x on the left, the column of W, or a word's row of the embedding, above, and the bias."""
    if isinstance(cell.op, Unembed):
        weight, note = "Eᵀ", "The row is multiplied by the embedding of a word: how well do the two fit?"
    else:
        letter = cell.op.letter if isinstance(cell.op, Project) else ""
        weight = f"W_{letter}" if letter else "W"
        note = "Every output column has a column of weights: the row is multiplied by it."
    rows = cell.axes[0][0] if isinstance(cell.op, Project) else cell.own[-2] if len(cell.own) > 1 else None
    row = "x" if rows is None else f"x, row of {cell.named(rows, cell.index[-2])}"
    product = product_of(cell.sums[0], row, f"{weight}, column of {cell.named(cell.own[-1], cell.column)}")
    yield Note(note)
    yield product
    working = written(product.total) if cell.values else _spelled(product.products)
    added = "".join(f" {value.symbol[0]} {factor(value.value)}" for value in cell.values)
    yield from cell.in_numbers(working + added)


def _spelled(products: Floats) -> str:
    parts = " + ".join(factor(float(f"{value:.4g}")) for value in products[:SPELLED].tolist())
    return f"{parts} + …" if len(products) > SPELLED else parts


# From scores to shares


def scaled(cell: Cell) -> Iterator[Part]:
    """The row before and after it is multiplied."""
    op, source = cast(Scale, cell.op), cell.sources[0]
    before = cell.row_of(source, range(source.shape[-1]))
    yield Note("Every number of the row is multiplied by the same factor, so that the order stays.")
    yield cell.bars(
        "The row, before and after",
        (op.of, op.expression),
        around(cell.column, len(before), MOST),
        lambda k: (float(before[k]), float(before[k] * op.factor)),
        lambda k: source.operand(*cell.index[:-1], k),
    )
    yield from cell.in_numbers(f"{factor(float(before[cell.column]))} · {written(op.factor)}")


def masked(cell: Cell) -> Iterator[Part]:
    """Who may look at whom, and the row with what is hidden; the operation's own working says so."""

    def may_look(query: int, key: int) -> bool:
        working = cell.op.explain((cell.index[0], query, key), *cell.sources)
        return not any(item.value == -math.inf for item in working.items[1:])  # type: ignore[union-attr]

    _, row, column = cell.index
    rows, columns = (around(place, axis.size, SIGHT) for place, axis in zip((row, column), cell.own[-2:], strict=True))
    seen = np.array([[may_look(query, key) for key in columns] for query in rows])
    queries, keys = (
        tuple(cell.short(axis, i) for i in part) for axis, part in zip(cell.own[-2:], (rows, columns), strict=True)
    )
    yield Note("A score of −∞ becomes a weight of exactly 0, since e^(−∞) = 0: the key is not seen.")
    yield Allowed(queries, keys, seen, (row - rows.start, column - columns.start))
    yield from cell.numbers()
    score = cell.value("score")
    kept = "kept" if math.isfinite(cell.result) or cell.result == score else "hidden"
    yield Equation(f"{written(score)} is {kept}: {written(cell.result)}")


def shares(cell: Cell) -> Iterator[Part]:
    """Every score of the row, its exponential and its share."""
    if not cell.sums:  # no key is visible
        yield Note("No key is visible: the row stays 0 instead of 0 ÷ 0.")
        yield from cell.in_numbers("weight")
        return
    total = cell.sums[0]
    row, powers = total.factors[0], total.contributions
    sink = next((value.value for value in cell.values if value.symbol == "+ e^(sink − max)"), None)
    whole = total.total + (sink or 0.0)
    shown = largest(powers, cell.column)
    yield Note("e^(s − max) makes every score positive, the largest 1; divided by their sum, the row sums to 1.")
    yield cell.bars(
        "The row",
        ("s", "e^(s − max)", "÷ Σ"),
        shown,
        lambda k: (float(row.values[k]), float(powers[k]), float(powers[k] / whole)),
        row.operand,
        rest_of(powers, shown) / whole,
    )
    if sink is not None:
        yield Number("sink", sink, "e^(sink − max), which no key gets")
    top = max(float(row.values.max()), *(value.value for value in cell.values if value.symbol == "sink"), -math.inf)
    yield Number("max", top, "the row's largest score")
    yield Number("Σ e^(s − max)", whole)
    parts = f"{written(total.total)}" if sink is None else f"({written(total.total)} + {written(sink)})"
    power = f"e^({written(float(row.values[cell.column]))} − {factor(top)})"
    yield cell.equation(f"{power} ÷ {parts} = {written(float(powers[cell.column]))} ÷ {written(whole)}")


def routed(cell: Cell) -> Iterator[Part]:
    """Every expert's logit and its exponential; an expert that is not among the largest has no share."""
    row = cell.sources[0].factor(cell.index[0], None)
    powers = np.exp(row.values - row.values.max())
    shown = largest(powers, cell.column)
    bars = tuple(
        Bar(f"expert {k}", (float(row.values[k]), float(powers[k])), k == cell.column, row.operand(k)) for k in shown
    )
    yield Note("A router gives every expert a number; only those with the largest are asked, with these shares.")
    yield Bars("The experts", ("z", "e^(z − max)"), bars, len(powers) - len(shown))
    yield from cell.numbers()
    if cell.sums:
        yield cell.equation(f"{written(float(powers[cell.column]))} ÷ {written(cell.sums[0].total)}")
    else:
        yield Equation(f"not chosen: {written(cell.result)}")


# Weighted rows


def context(cell: Cell) -> Iterator[Part]:
    """The rows of V, each as strong as its weight."""
    weights, values = cell.sums[0].factors[:2]
    yield Note("Each row of V counts as much as its weight; added up they are what the head brings to this token.")
    yield _weighted("weight · row of V", cell, weights.values, (weights, values), 1, *values.place(0)[:1])
    yield cell.equation("Σ weight · v")


def pooled(cell: Cell) -> Iterator[Part]:
    """The rows of the tokens, each as strong as its share."""
    total = cell.sums[0]
    values, own = total.factors[:2]
    counted = np.divide(total.contributions, values.values, out=np.zeros_like(values.values), where=values.values != 0)
    yield Note("The rows of the tokens become one: each counts as much as its share.")
    yield _weighted("share · row of x", cell, counted, (own, values), 0)
    yield cell.equation(cell.op.formula)


def _weighted(
    title: str, cell: Cell, shares: Floats, factors: tuple[Factor, Factor], which: int, *head: int
) -> Weighted:
    """The rows of an input, of one head of it where it has heads."""
    columns, shown, axis = cell.around(cell.own[-1].size), largest(shares), cell.axes[which][-2]
    region = (*(range(each, each + 1) for each in head), range(len(shares)), columns)
    every = cell.sources[which].read(region).reshape(len(shares), len(columns))
    return Weighted(
        title,
        labels=tuple(cell.short(axis, k) for k in shown),
        shares=shares[list(shown)],
        rows=every[list(shown)],
        total=shares @ every,
        first=columns.start,
        marked=cell.column - columns.start,
        others=len(shares) - len(shown),
        sources=tuple((factors[0].operand(k), factors[1].operand(k)) for k in shown),
    )


def mixed(cell: Cell) -> Iterator[Part]:
    """The output of every chosen expert, times its share."""
    values = cell.values
    pairs = list(zip(values[::2], values[1::2], strict=True))
    bars = tuple(
        Bar(
            share.symbol.removeprefix("share of "),
            (share.value, output.value, share.value * output.value),
            source=output.source,
        )
        for share, output in pairs[:MOST]
    )
    yield Note("What the chosen experts say is added up, each as strong as its share.")
    yield Bars("The experts", ("share", "output", "share · output"), bars, max(len(pairs) - MOST, 0))
    terms = [f"{written(share.value)} · {factor(output.value)}" for share, output in pairs[:MOST]]
    yield cell.equation(" + ".join(terms) or "no expert")


# Positions: waves, turns, and numbers that are added by distance


def wave(cell: Cell) -> Iterator[Part]:
    """The wave of the column over the places, with the token's place on it."""
    place = cell.sources[0].cell(cell.index[0])
    every = np.arange(max(PLACES, int(place) + 1), dtype=np.float64)
    source = Source("places", (len(every),), lambda region: every[region[0].start : region[0].stop])
    heights = np.array([cell.op.explain((k, cell.column), source).result for k in range(len(every))])
    yield Note("Each column is a wave of its own length over the places; a token has the heights at its place.")
    yield Curve(f"column {cell.column}: {cell.op.formula}", "place", every, heights, (place, cell.result))
    yield from cell.numbers()
    function, angle = cell.values[4], cell.values[3]
    if cell.result == function.value:
        yield cell.equation(f"{function.symbol}({written(angle.value)})")
    else:
        yield Equation(f"the row of padding is {written(cell.result)}")


def turned(cell: Cell) -> Iterator[Part]:
    """The pair as a point of the plane, turned by an angle that grows with the place."""
    op = cast(Rotate, cell.op)
    if len(cell.values) == 1:
        yield Note("This column is not turned: it is passed on.")
        yield from cell.in_numbers("x")
        return
    head, row, column = cell.index
    first, second = column % op.half, column % op.half + op.half
    before = cell.sources[0].cell(head, row, first), cell.sources[0].cell(head, row, second)
    after = tuple(cell.op.explain((head, row, each), *cell.sources).result for each in (first, second))
    angle = cell.value("θ")
    yield Note("Two columns are a point of the plane. It is turned by θ, which grows with the token's place.")
    yield Turn(before, (after[0], after[1]), angle, (f"column {first}", f"column {second}"))
    sign = "+" if column >= op.half else "−"
    x, partner = factor(cell.value("x")), factor(cell.value("x'"))
    working = f"{x} · {factor(math.cos(angle))} {sign} {partner} · {factor(math.sin(angle))}"
    yield from cell.in_numbers(working if op.factor == 1.0 else f"{written(op.factor)} · ({working})")


def by_distance(cell: Cell) -> Iterator[Part]:
    """The row's scores, what the distance adds to each, and their sum."""

    def change(score: float, after: float) -> float:
        return after - score if math.isfinite(score) else 0.0

    def numbers(key: int) -> tuple[float, ...]:
        index = (*cell.index[:-1], key)
        score, after = cell.sources[0].cell(*index), cell.op.explain(index, *cell.sources).result
        return score, after, change(score, after)

    shown = around(cell.column, cell.own[-1].size, MOST)
    yield Note("What is added to a score depends on how far the key is from the query, not on the words.")
    yield cell.bars(
        "The row",
        ("score", "result", "added"),
        shown,
        numbers,
        lambda key: cell.sources[0].operand(*cell.index[:-1], key),
        math.nan,
    )
    score = cell.value("score")
    yield from cell.in_numbers(f"{written(score)} + {factor(change(score, cell.result))}")
