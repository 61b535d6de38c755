"""A step and the cell under the cursor, before they are drawn: view, scale, numbers, the working of the cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import cached_property, partial
from time import perf_counter as clock

import numpy as np

from tui_transformer.analysis.attentions import Report, is_attention, renormalized
from tui_transformer.analysis.tokens import NOTHING, Hidden, tokens_of
from tui_transformer.engine.axis import shape_of, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.edits import how_set
from tui_transformer.engine.explanation import Explanation, Value
from tui_transformer.engine.gradient_explanation import explain_gradient
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.nearest_tokens import Near, near, near_cost, with_neighbours
from tui_transformer.session.overlay import SCREENFUL, OverlayMatrix, overlay_of
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session, gradient_cost
from tui_transformer.session.store import Reading
from tui_transformer.session.view_state import Shown, ViewState
from tui_transformer.views.step_view import Place, index_of, joined, scale_for, tile_extremes, view_of
from tui_transformer.views.view import HIDDEN, Frame, Scale, Tile, Values, View

SCAN_COST = 4
"""Operations that it takes to look through a step, per cell."""

WORD_ROWS = 40
"""Rows that are fetched at first of a matrix whose rows have to be worked out over the whole vocabulary."""

NO_TILE = Tile(0, 0, np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class StepScene:
    """A step, ready to be drawn wherever the cursor is; and the cell under it.

    Attributes:
        view: The step's own values.
        scale: The range that their colours stand for.
        tile: Values at hand: all of them, where they are drawn from this computer's memory; else those around the cell.
        overlay: What is beside the values, if anything is.
        shown: Which of the two are drawn.
        seconds: The time that the step took to compute.
        hidden: What is left out of the attention weights that are drawn, in words.
        place: The cell.
        working: How the cell was made: of the gradient, where that is shown; None until it is there.
        values: The numbers beside the cell.
        edited: How the cell was set; "" where it was computed.
        near: Of a row of an embedding the nearest words, empty until they are there; None of any other step.
        frame: A moment on the way to the values, which is drawn in their place; None where they are.
    """

    view: View
    scale: Scale
    tile: Tile
    overlay: OverlayMatrix | None
    shown: Shown
    seconds: float
    hidden: str
    place: Place = field(default_factory=Place)
    working: Explanation | None = None
    values: tuple[Value, ...] = ()
    edited: str = ""
    near: tuple[Near, ...] | None = None
    frame: Frame | None = None

    @cached_property
    def alone(self) -> OverlayMatrix | None:
        """The matrix that is drawn in place of the step's own values."""
        return None if self.shown in ("both", "value") else self.overlay

    @cached_property
    def drawn(self) -> View:
        """The view that is drawn, the first of two."""
        return self.view if self.alone is None else self.alone.view


def step_scene(
    reading: Reading, session: Session, position: Position, view_state: ViewState, shown: Shown
) -> StepScene | None:
    """Everything that the matrix and cell panes show of a position; None where the step itself is missing.

    Args:
        reading: Gives what is there.
        session: The model and its sentence.
        position: A step or weight and a cell of it; the cell is moved inside the matrix.
        view_state: Which tokens are hidden, and whether the scale is shared.
        shown: Which matrices are drawn.
    """
    name, hidden, shared = position.stop, view_state.hidden, view_state.shared_scale
    trace, axes = session.trace, session.trace.program.axes(position.stop)
    heads = axes[0].size if len(axes) == 3 else 1
    place = Place(min(position.place.head, heads - 1), position.place.row, position.place.column)
    drawn = reading.get(
        session,
        name,
        ("matrix", place.head, hidden, shared, shown),
        lambda: step_cost(session, name, shared=shared),
        lambda report: draw(session, name, place.head, view_state, shown, report),
    )
    if drawn is None:
        return None
    place = place.within(drawn.view)
    if drawn.alone is not None:
        place = place.within(drawn.alone.view)
    tile, overlay = drawn.tile, drawn.overlay
    if tile is NO_TILE:
        cost, make = partial(_cost_of_part, trace, name), partial(tile_of, trace, drawn.view)
        tile = _tile_at(reading, session, drawn.view, place, ("tile", hidden), cost, make)
    if overlay is not None and not overlay.tile.covers(*(range(at, at + 1) for at in (place.row, place.column))):
        beside, what = overlay.view, ("overlay tile", hidden, shown)
        cost = partial(math.prod, first_size(beside.columns.name), start=SCAN_COST)
        overlay = replace(overlay, tile=_tile_at(reading, session, beside, place, what, cost, beside.tile))
    cell = reading.get(
        session, name, ("cell", place, shown, hidden), lambda: 0, lambda _: cell_of(session, name, place, shown, hidden)
    )
    working, values, edited = (None, (), "") if cell is None else (cell.working, cell.values, cell.edited)
    nearest = None
    if name in with_neighbours(trace.program):
        asked = view_state.words
        cost, work = partial(near_cost, session, name, asked), partial(near, session, Position(name, place), asked)
        nearest = reading.get(session, name, ("near", place.row, asked), cost, work) or ()
    return replace(
        drawn, tile=tile, overlay=overlay, place=place, working=working, values=values, edited=edited, near=nearest
    )


def draw(session: Session, name: str, head: int, view_state: ViewState, shown: Shown, report: Report) -> StepScene:
    """A step as it is drawn wherever the cursor is, without a cell; what is missing is computed.

    The range of its colours does not depend on the cursor: of a step that is not kept whole it is that of its first
    cells.
    """
    trace, started = session.trace, clock()
    if name in trace.program.by_name:
        trace.prepare(name, before=lambda step: report(step.name))
    seconds = session.cache.edited.setdefault(f"seconds of {name}", clock() - started)  # those of the first time
    stored = view_of(trace, name, session.labels, head=head)
    view = without_hidden(session, stored, view_state.hidden) if view_state.hidden != NOTHING else stored
    first, (rows, columns) = around(view, Place()), view.shape
    here = trace.backend.device == "cpu" and (name not in trace.program.by_name or name in trace.plan.names)
    if here and (rows * columns <= SCREENFUL**2 or _attention(trace, name) is None):
        first = range(rows), range(columns)  # all of it, from this computer's memory
    tile = tile_of(trace, view, *first)
    is_whole = view is stored
    names = _same_kind(trace, name) if view_state.shared_scale else (name,)
    known = [each for each in map(session.extremes, names) if each is not None] if is_whole else []
    limits = joined(*known) if known else tile_extremes(tile.values, shares=view.shares)
    scale, overlay = scale_for(view.kind, *limits), None
    if session.overlay.kind != "nothing":
        hide = partial(without_hidden, choice=view_state.hidden) if view_state.hidden != NOTHING else None
        overlay = overlay_of(session, view, shown, report, hide)
        if overlay is not None and session.overlay.kind == "trace":
            both = (hidden_keys(each, name, view_state.hidden) for each in (session, session.other))
            if any(keys is not None for keys in both):
                overlay = replace(overlay, note=view_state.hidden.text)
    if overlay is not None and shown == "both" and session.overlay.kind == "trace":
        scale = overlay.scale
    tile = tile if tile.values.shape == view.shape else NO_TILE
    return StepScene(view, scale, tile, overlay, shown, seconds, "" if is_whole else view_state.hidden.text)


def _tile_at(
    reading: Reading,
    session: Session,
    view: View,
    place: Place,
    what: tuple[Hashable, ...],
    cost: Callable[[], int],
    make: Callable[[range, range], Tile],
) -> Tile:
    """The cells of a view around a place; none until they are there."""
    part = around(view, place)
    made = reading.get(session, view.name, (*what, view.head, *part), cost, lambda _: make(*part))
    return NO_TILE if made is None else made


def around(view: View, place: Place) -> tuple[range, range]:
    """Rows and columns to be fetched around a place: the same ones for places that are near each other."""
    height, width = first_size(view.columns.name)
    top, left = (
        max(at // (size // 2) * (size // 2) - size // 4, 0)
        for at, size in zip((place.row, place.column), (height, width), strict=True)
    )
    return range(top, top + height), range(left, left + width)


def step_cost(session: Session, name: str, *, shared: bool) -> int:
    """About how many operations it takes to draw a step: what is to be computed, and looking through it."""
    trace, kind = session.trace, session.overlay.kind
    cost, whole = 0, list[str]()
    for each in _same_kind(trace, name) if shared else (name,):
        if each not in trace.program.by_name or each in trace.plan.names:  # all is looked through
            whole += [each] if each in trace.program.by_name else []
            cost += 0 if session.knows_extremes(each) else SCAN_COST * math.prod(trace.program.shape(each))
        elif each == name:
            cost += _cost_of_part(trace, name)
    cost += trace.pending(whole)
    if kind == "gradient":
        cost += gradient_cost(session)
    if kind == "trace" and name in session.other.trace.program.by_name:
        other = session.other.trace
        cost += other.pending([name]) + SCAN_COST * math.prod(other.program.shape(name))
    return cost


def _cost_of_part(trace: Trace, name: str) -> int:
    """Cost of drawing a part of a step that is not kept: its inputs, and the cells themselves."""
    *heads, rows, columns = (1, 1, *trace.program.shape(name))[-3:]
    height, width = first_size(trace.program.axes(name)[-1].name)
    share = min(height, rows) / rows / math.prod(heads)
    return trace.pending_part(name, share) + SCAN_COST * min(height, rows) * min(width, columns)


def first_size(columns: str) -> tuple[int, int]:
    """Rows and columns that are fetched at first of a matrix that is not drawn whole, by what its columns are."""
    return (WORD_ROWS if columns == "vocabulary" else SCREENFUL), SCREENFUL


def tile_of(trace: Trace, view: View, rows: range, columns: range) -> Tile:
    """Cells of a view to be drawn; attention weights of masked scores, which are 0, are marked as masked."""
    tile, step = view.tile(rows, columns), _attention(trace, view.name)
    if step is None:
        return tile
    height, width = tile.values.shape
    heads = range(view.head or 0, (view.head or 0) + 1)
    region = heads, range(tile.row, tile.row + height), range(tile.column, tile.column + width)
    hidden = np.isneginf(trace.window(step.inputs[0], region)[0])
    return replace(tile, values=np.where(hidden, -np.inf, tile.values)) if hidden.any() else tile


def _attention(trace: Trace, name: str) -> Step | None:
    step = trace.program.by_name.get(name)
    return step if step is not None and step.square and is_attention(step) else None


def _same_kind(trace: Trace, name: str) -> tuple[str, ...]:
    """Every step of the program with the same sublayer and last part, whatever the layer."""
    if name not in trace.program.by_name:
        return (name,)
    kind = name.split(".")[-2:]
    return tuple(step.name for step in trace.program.steps if step.name.split(".")[-2:] == kind)


# The cell


@dataclass(frozen=True, eq=False)
class Cell:
    """How a cell was made, the numbers that are beside it, and how it was set if it was."""

    working: Explanation
    values: tuple[Value, ...]
    edited: str


def cell_of(session: Session, name: str, place: Place, shown: Shown, choice: Hidden = NOTHING) -> Cell:
    """How the cell at a place was made: that of the gradient where it is shown, else the step's own.

    Beside it is what is drawn of it while tokens are hidden, its gradient, or the same cell of the other trace.
    """
    axes = session.trace.program.axes(name)
    index, values = index_of(axes, place), tuple[Value, ...]()
    gradient = session.gradients.values.get(name) if session.overlay.kind == "gradient" else None
    if gradient is not None and shown != "value":
        values = (Value("value", session.trace.source(name).cell(*index)),)
        working = explain_gradient(session.trace, session.gradients, session.loss_targets, name, index)
    else:
        working = session.trace.explain_cell(name, index)
        if gradient is not None:
            values = (Value("∂loss/∂x", float(gradient[index])),)
        elif session.overlay.kind == "trace":
            values = _compared(session, name, place, working.stored)
    if choice != NOTHING and (gradient is None or shown != "overlay"):  # a gradient is drawn whole
        left = weight_left(session, name, place, choice, shown)
        values = (*values, *(left if gradient is None or shown == "value" else left[:1]))
    return Cell(working, values, how_set(session.trace.edits, working.name, working.index) if session.edits else "")


def _compared(session: Session, name: str, place: Place, value: float) -> tuple[Value, ...]:
    other, label = session.other.trace, session.overlay.label
    if name not in (*other.program.by_name, *other.program.weights):
        return (Value("beside", np.nan, note=f"no such step in {label}"),)
    axes = other.program.axes(name)
    if not has_cell(session, name, place):
        return (Value("beside", np.nan, note=f"no such cell: {shape_text(shape_of(axes))} in {label}"),)
    there = other.source(name).cell(*index_of(axes, place))
    return Value("beside", there, note=label), Value("difference", 0.0 if value == there else value - there)


def has_cell(session: Session, name: str, place: Place) -> bool:
    """Whether the other trace has the cell of a step of this one."""
    other, own = session.other.trace.program, session.trace.program.axes(name)
    if name not in (*other.by_name, *other.weights) or len(axes := other.axes(name)) != len(own):
        return False
    return all(i < n for i, n in zip(index_of(axes, place), shape_of(axes), strict=True))


# Attention without some tokens: what is left of every row sums to 1 again


def hidden_keys(session: Session, name: str, choice: Hidden) -> Host | None:
    """True for every key that is left out of a step of attention weights; None where none is."""
    step = _attention(session.trace, name) if choice != NOTHING else None
    if step is None:
        return None
    hidden = tokens_of(session.trace, session.model.vocabulary, step.axes[-1]).hidden(choice)
    return hidden if hidden.any() else None


def without_hidden(session: Session, view: View, choice: Hidden) -> View:
    """A view of attention weights without the hidden keys, which are masked; any other view as it is."""
    hidden = hidden_keys(session, view.name, choice)
    if hidden is None:
        return view

    def window(rows: range, columns: range) -> Values:
        part = slice(columns.start, columns.stop)
        left = renormalized(view.window(rows, range(view.columns.size)), hidden)[:, part]
        return np.where(hidden[part], np.nan, left)

    return replace(view, window=window, absent=HIDDEN)


def weight_left(session: Session, name: str, place: Place, choice: Hidden, shown: Shown) -> tuple[Value, ...]:
    """The weight that is drawn while tokens are hidden, and the stored one, which is the one that is explained.

    What is drawn may be the weight of the other trace, or the difference of the two.
    """
    pair = session.overlay.kind == "trace" and shown in ("overlay", "difference") and has_cell(session, name, place)
    sides = (session.other,) if pair and shown == "overlay" else (session, session.other) if pair else (session,)
    hidden = [hidden_keys(each, name, choice) for each in sides]
    if all(keys is None for keys in hidden):
        return ()
    left = []  # of each a share of those whose keys are not hidden
    for each, keys in zip(sides, hidden, strict=True):
        view = view_of(each.trace, name, each.labels, head=place.head)
        row = view.window(range(place.row, place.row + 1), range(view.columns.size))
        left.append(float((row if keys is None else renormalized(row, keys))[0, place.column]))
    note = "key hidden" if any(keys is not None and keys[place.column] for keys in hidden) else "renormalised"
    stored = session.trace.source(name).cell(*index_of(session.trace.program.axes(name), place))
    return Value("as drawn", left[0] - sum(left[1:]), note=note), Value("as stored", stored, note="explained here")
