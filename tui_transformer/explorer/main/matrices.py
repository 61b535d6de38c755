"""The matrix beside a step's own: its gradient, the same step of another trace, or the difference to that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.analysis.token_kinds import NOTHING, Hidden
from tui_transformer.engine.axis import Axes, shape_of, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Explanation, Value
from tui_transformer.engine.gradient_explanation import explain_gradient
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.state.comparison import Shown
from tui_transformer.explorer.state.hiding import weight_left
from tui_transformer.explorer.state.session import Session
from tui_transformer.views.step_view import (
    Place,
    difference_of,
    extremes,
    gradient_of,
    index_of,
    scale_for,
    tile_extremes,
    view_of,
)
from tui_transformer.views.view import Scale, Tile, View

Report = Callable[[str], None]
SCREENFUL = 256
"""Rows and columns that are fetched at first where a matrix is not drawn from memory as it is."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix beside a step's own, ready to be drawn; `note` says what else is to be known of it."""

    view: View
    scale: Scale
    tile: Tile
    title: str
    note: str = ""


def matrix_beside(session: Session, view: View, place: Place, shown: Shown, report: Report) -> Matrix | None:
    """What is beside a view; None where there is nothing, or where this step has no such thing."""
    kind = session.beside.kind
    if kind == "nothing" or (kind == "trace" and shown == "value"):
        return None
    if kind == "gradient":
        return _gradient(session, view, place, report)
    return _of_other(session, view, place, shown, report)


# The gradient


def _gradient(session: Session, view: View, place: Place, report: Report) -> Matrix | None:
    found = session.go_back(report).values.get(view.name)
    if found is None:
        return None
    axes = session.trace.program.axes(view.name)
    made = gradient_of(view, axes, found)
    low, high = float(found.min()), float(found.max())
    title = f"∂loss/∂{view.name.rpartition('.')[2]} · {shape_text(shape_of(axes))}"
    norm = float(np.linalg.norm(found.astype(np.float64)))
    return Matrix(made, scale_for("diverging", low, high), _tile(made, place), title, f"norm {norm:.3g}")


# Another trace


def other_view(session: Session, view: View, report: Report = lambda _: None) -> View | None:
    """The same step or weight of the other trace; None where it has none."""
    other, name = session.other, view.name
    program = other.trace.program
    if name in program.by_name:
        other.trace.prepare(name, before=lambda step: report(step.name))
    elif name not in program.weights:
        return None
    axes = program.axes(name)
    heads = axes[0].size if len(axes) == 3 else 1
    if len(axes) != len(session.trace.program.axes(name)):
        return None
    return view_of(other.trace, name, other.labels, head=min(view.head or 0, heads - 1))


def _of_other(session: Session, view: View, place: Place, shown: Shown, report: Report) -> Matrix | None:
    second = other_view(session, view, report)
    if second is None:
        return None
    difference = shown == "difference"
    made = difference_of(view, second) if difference else second
    tile = _tile(made, place)
    scale = _difference_scale(made, tile) if difference else joint_scale(session, view, second)
    title = f"this less {session.beside.label}" if difference else session.beside.label
    part = "common part " if difference and view.shape != second.shape else ""
    return Matrix(made, scale, tile, f"{title} · {part}{shape_text(made.shape)}")


def joint_scale(session: Session, first: View, second: View) -> Scale:
    """One scale for both, so that the same colour is the same number."""
    ends = [*_ends(session.trace, first), *_ends(session.other.trace, second)]
    return scale_for(first.kind, min(ends), max(ends))


def _ends(trace: Trace, view: View) -> tuple[float, float]:
    return extremes(trace, view.name) or tile_extremes(_tile(view, Place()).values)


def _difference_scale(view: View, tile: Tile) -> Scale:
    return scale_for(view.kind, *tile_extremes(tile.values))


def apart(session: Session, name: str) -> str:
    """How far a step is apart in the two traces, and which step is the first that differs, once that is known."""
    compared = session.comparison
    if session.beside.kind != "trace" or compared is None:
        return ""
    first = "nothing differs" if compared.first is None else f"first that differs: {compared.first} (D)"
    found = compared.differences.get(name)
    if found is None:
        return first
    return f"largest difference {found.largest:.3g}, relative {found.relative:.3g} · {first}"


def details(session: Session) -> Mapping[str, str]:
    """A number for every step that has one: the norm of its gradient, or its largest difference."""
    if session.beside.kind == "gradient" and session.went_back:
        return {name: f"{size:.2g}" for name, size in session.gradient_norms.items()}
    if session.comparison is not None:
        return {name: f"{found.largest:.2g}" for name, found in session.comparison.differences.items()}
    return {}


def _tile(view: View, place: Place) -> Tile:
    """The cells around a place, or all where they are few."""
    rows, columns = view.shape
    top, left = max(place.row - SCREENFUL // 2, 0), max(place.column - SCREENFUL // 2, 0)
    if rows * columns <= SCREENFUL**2:
        return view.tile(range(rows), range(columns))
    return view.tile(range(top, top + SCREENFUL), range(left, left + SCREENFUL))


# The cell


@dataclass(frozen=True, eq=False)
class Cell:
    """How the cell was made, and the numbers that are beside it."""

    working: Explanation
    values: tuple[Value, ...] = ()


def cell_of(session: Session, name: str, place: Place, shown: Shown, choice: Hidden = NOTHING) -> Cell:
    """How the cell at a place was made, and what is drawn of it while tokens are hidden."""
    found = _cell(session, name, place, shown)
    return replace(found, values=(*found.values, *weight_left(session, name, place, choice)))


def _cell(session: Session, name: str, place: Place, shown: Shown) -> Cell:
    """How the cell at a place was made: that of the gradient where it is shown, else the step's own."""
    axes = session.trace.program.axes(name)
    index = index_of(axes, place)
    if session.beside.kind == "gradient" and (found := session.gradients.values.get(name)) is not None:
        if shown == "value":
            return Cell(session.trace.explain_cell(name, index), (Value("∂loss/∂x", float(found[index])),))
        value = _number(session.trace, name, axes, place)
        explained = explain_gradient(session.trace, session.gradients, session.loss_targets, name, index)
        return Cell(explained, (Value("value", value),))
    explained = session.trace.explain_cell(name, index)
    return Cell(explained, _compared(session, name, place, explained.stored))


def _compared(session: Session, name: str, place: Place, value: float) -> tuple[Value, ...]:
    """The same cell of the other trace, and the difference."""
    if session.beside.kind != "trace":
        return ()
    other, label = session.other.trace, session.beside.label
    if name not in (*other.program.by_name, *other.program.weights):
        return (Value("beside", np.nan, note=f"no such step in {label}"),)
    axes = other.program.axes(name)
    sizes, index = shape_of(axes), index_of(axes, place)
    if len(axes) != len(session.trace.program.axes(name)) or not all(i < n for i, n in zip(index, sizes, strict=True)):
        return (Value("beside", np.nan, note=f"no such cell: {shape_text(sizes)} in {label}"),)
    beside = _number(other, name, axes, place)
    return Value("beside", beside, note=label), Value("difference", 0.0 if value == beside else value - beside)


def _number(trace: Trace, name: str, axes: Axes, place: Place) -> float:
    """One cell."""
    region = tuple(range(i, i + 1) for i in index_of(axes, place))
    found: Host = trace.window(name, region)
    return float(found.reshape(()))
