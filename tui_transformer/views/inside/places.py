"""The inside of steps that depend on places: waves, turns, and numbers that are added by distance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import numpy as np

from tui_transformer.engine.explanation import Source
from tui_transformer.engine.ops import Rotate
from tui_transformer.views.inside.cell import MOST, Cell, around, factor, written
from tui_transformer.views.inside.general import number
from tui_transformer.views.inside.parts import Bar, Bars, Curve, Equation, Note, Part, Turn

PLACES = 64
"""Places that a wave is drawn over, at least."""


def wave(cell: Cell) -> Iterator[Part]:
    """The wave of the column over the places, with the token's place on it."""
    place = cell.sources[0].cell(cell.index[0])
    every = np.arange(max(PLACES, int(place) + 1), dtype=np.float64)
    source = Source("places", (len(every),), lambda region: every[region[0].start : region[0].stop])
    heights = np.array([cell.op.explain((k, cell.column), source).result for k in range(len(every))])
    yield Note("Each column is a wave of its own length over the places; a token has the heights at its place.")
    yield Curve(f"column {cell.column}: {cell.op.formula}", "place", every, heights, (place, cell.result))
    yield from map(number, cell.values)
    function, angle = cell.values[4], cell.values[3]
    if cell.result == function.value:
        yield Equation(f"{function.symbol}({written(angle.value)}) = {written(cell.result)}")
    else:
        yield Equation(f"the row of padding is {written(cell.result)}")


def turned(cell: Cell) -> Iterator[Part]:
    """The pair as a point of the plane, turned by an angle that grows with the place."""
    op = cast(Rotate, cell.op)
    if len(cell.values) == 1:
        yield Note("This column is not turned: it is passed on.")
        yield from map(number, cell.values)
        yield Equation(f"x = {written(cell.result)}")
        return
    head, row, column = cell.index
    first, second = column % op.half, column % op.half + op.half
    before = tuple(cell.sources[0].cell(head, row, each) for each in (first, second))
    after = tuple(cell.op.explain((head, row, each), *cell.sources).result for each in (first, second))
    angle = cell.value("θ")
    yield Note("Two columns are a point of the plane. It is turned by θ, which grows with the token's place.")
    yield Turn((before[0], before[1]), (after[0], after[1]), angle, (f"column {first}", f"column {second}"))
    yield from map(number, cell.values)
    sign = "+" if column >= op.half else "−"
    x, partner = cell.value("x"), cell.value("x'")
    spelled = f"{factor(x)} · {factor(math.cos(angle))} {sign} {factor(partner)} · {factor(math.sin(angle))}"
    if op.factor != 1.0:
        spelled = f"{written(op.factor)} · ({spelled})"
    yield Equation(f"{spelled} = {written(cell.result)}")


def by_distance(cell: Cell) -> Iterator[Part]:
    """The row's scores, what the distance adds to each, and their sum."""
    *before, _ = cell.index
    shown = around(cell.column, cell.own[-1].size, MOST)
    bars = []
    for key in shown:
        index = (*before, key)
        score, after = cell.sources[0].cell(*index), cell.op.explain(index, *cell.sources).result
        added = after - score if math.isfinite(score) else 0.0
        operand = cell.sources[0].operand(*index)
        bars.append(Bar(cell.short(cell.own[-1], key), (score, after, added), key == cell.column, operand))
    yield Note("What is added to a score depends on how far the key is from the query, not on the words.")
    yield Bars("The row", ("score", "result", "added"), tuple(bars), cell.own[-1].size - len(bars), math.nan)
    yield from map(number, cell.values)
    score = cell.value("score")
    added = cell.result - score if math.isfinite(score) else 0.0
    yield Equation(f"{written(score)} + {factor(added)} = {written(cell.result)}")
