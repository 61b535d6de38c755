"""Functions of one number: the curve, and the point of it that the cell is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.engine.explanation import Source
from tui_transformer.views.inside.cell import Cell, factor, written
from tui_transformer.views.inside.general import number
from tui_transformer.views.inside.parts import Curve, Equation, Note, Part

REACH = 4.0
"""How far the curve goes on both sides of 0, where the point is not further away."""

SAMPLES = 161


def activation(cell: Cell) -> Iterator[Part]:
    """The curve of the function with the point, and what it makes of the number."""
    x = cell.sources[0].cell(*cell.index)
    yield Note("The same function for every number by itself: what goes in lies across, what comes out is the height.")
    yield curve_of(cell, x)
    yield from map(number, cell.values)
    yield Equation(f"{_spelled(cell, x)} = {written(cell.result)}")


def curve_of(cell: Cell, x: float) -> Curve:
    """The function of the operation around a point, worked out by the operation itself."""
    reach = max(REACH, 1.25 * abs(x)) if np.isfinite(x) else REACH
    places = np.linspace(-reach, reach, SAMPLES)
    source = Source("x", (1, SAMPLES), lambda region: places[None, region[1].start : region[1].stop])
    heights = np.array([cell.op.explain((0, k), source).result for k in range(SAMPLES)])
    return Curve(cell.op.formula, "x", places, heights, (x, cell.result))


def _spelled(cell: Cell, x: float) -> str:
    """The formula with its numbers."""
    values = cell.values
    if len(values) == 1:
        return f"{cell.op.formula} for x = {written(x)}"
    if values[0].symbol == "x" and len(values) == 2:
        return f"{factor(x)} · {written(values[1].value)}"
    numbers = ", ".join(f"{value.symbol} = {written(value.value)}" for value in values)
    return f"{cell.op.formula} for {numbers}"
