"""The cell under the cursor: how it was made, and the numbers that are beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.analysis.token_kinds import NOTHING, Hidden
from tui_transformer.engine.axis import Axes, shape_of, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Explanation, Value
from tui_transformer.engine.gradient_explanation import explain_gradient
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.state.hiding import weight_left
from tui_transformer.explorer.state.overlay import Shown
from tui_transformer.explorer.state.session import Session
from tui_transformer.views.step_view import Place, index_of


@dataclass(frozen=True, eq=False)
class Cell:
    """How the cell was made, and the numbers that are beside it."""

    working: Explanation
    values: tuple[Value, ...] = ()


def cell_of(session: Session, name: str, place: Place, shown: Shown, choice: Hidden = NOTHING) -> Cell:
    """How the cell at a place was made, and what is drawn of it while tokens are hidden."""
    cell = _cell(session, name, place, shown)
    return replace(cell, values=(*cell.values, *weight_left(session, name, place, choice)))


def _cell(session: Session, name: str, place: Place, shown: Shown) -> Cell:
    """How the cell at a place was made: that of the gradient where it is shown, else the step's own."""
    axes = session.trace.program.axes(name)
    index = index_of(axes, place)
    if session.overlay.kind == "gradient" and (gradient := session.gradients.values.get(name)) is not None:
        if shown == "value":
            return Cell(session.trace.explain_cell(name, index), (Value("∂loss/∂x", float(gradient[index])),))
        value = _number(session.trace, name, axes, place)
        explained = explain_gradient(session.trace, session.gradients, session.loss_targets, name, index)
        return Cell(explained, (Value("value", value),))
    explained = session.trace.explain_cell(name, index)
    return Cell(explained, _compared(session, name, place, explained.stored))


def _compared(session: Session, name: str, place: Place, value: float) -> tuple[Value, ...]:
    """The same cell of the other trace, and the difference."""
    if session.overlay.kind != "trace":
        return ()
    other, label = session.other.trace, session.overlay.label
    if name not in (*other.program.by_name, *other.program.weights):
        return (Value("beside", np.nan, note=f"no such step in {label}"),)
    axes = other.program.axes(name)
    sizes, index = shape_of(axes), index_of(axes, place)
    if len(axes) != len(session.trace.program.axes(name)) or not all(i < n for i, n in zip(index, sizes, strict=True)):
        return (Value("beside", np.nan, note=f"no such cell: {shape_text(sizes)} in {label}"),)
    there = _number(other, name, axes, place)
    return Value("beside", there, note=label), Value("difference", 0.0 if value == there else value - there)


def _number(trace: Trace, name: str, axes: Axes, place: Place) -> float:
    """One cell."""
    region = tuple(range(i, i + 1) for i in index_of(axes, place))
    value: Host = trace.window(name, region)
    return float(value.reshape(()))
