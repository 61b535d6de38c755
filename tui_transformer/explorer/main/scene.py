"""Contents of the screen at a position, before they are drawn: views, scale, numbers, the working of a cell."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.analysis.attentions import is_attention
from tui_transformer.engine.explanation import Explanation, Value
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.main.cell import cell_of
from tui_transformer.explorer.main.overlay import SCREENFUL, OverlayMatrix, overlay_of
from tui_transformer.explorer.state.hiding import without_hidden
from tui_transformer.explorer.state.near import Near, has_neighbours
from tui_transformer.explorer.state.overlay import Shown
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.state.view_state import ViewState
from tui_transformer.views.step_view import (
    Place,
    index_of,
    scale_for,
    tile_extremes,
    view_of,
)
from tui_transformer.views.view import Scale, Tile, View

SCAN_COST = 4
"""Operations that it takes to find the extremes, per cell."""

WORD_ROWS = 40
"""Rows that are fetched at first of a matrix whose rows have to be worked out over the whole vocabulary."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A position, ready to be drawn.

    Attributes:
        view: The step's own values.
        working: How the cell was made: of the gradient, where that is shown.
        seconds: The time that the step took to compute.
        overlay: What is beside the values, if anything is.
        shown: Which of the two are drawn.
        values: The numbers beside the cell.
        hidden: What is left out of the attention weights that are drawn, in words.
        near: Of a row of an embedding the nearest words, empty until they are there; None of any other step.
    """

    view: View
    scale: Scale
    tile: Tile
    place: Place
    working: Explanation | None
    seconds: float = 0.0
    overlay: OverlayMatrix | None = None
    shown: Shown = "value"
    values: tuple[Value, ...] = ()
    hidden: str = ""
    near: tuple[Near, ...] | None = None

    @property
    def alone(self) -> OverlayMatrix | None:
        """The matrix that is drawn in place of the step's own values."""
        return None if self.shown in ("both", "value") else self.overlay

    @property
    def drawn(self) -> View:
        """The view that is drawn, the first of two."""
        return self.view if self.alone is None else self.alone.view


def gather(
    session: Session, position: Position, view_state: ViewState, shown: Shown, report: Callable[[str], None]
) -> Scene:
    """Everything that the matrix and cell panes show of a position; what is missing is computed.

    Args:
        session: The model and its sentence.
        position: A step or weight and a cell of it; the cell is moved inside the matrix.
        view_state: Which tokens are hidden, and whether the scale is shared.
        shown: Which matrices are drawn.
        report: Told what is being computed; may raise to end it.
    """
    trace, name = session.trace, position.stop
    started = time.perf_counter()
    if name in trace.program.by_name:
        trace.prepare(name, before=lambda step: report(step.name))
    seconds = time.perf_counter() - started
    axes = trace.program.axes(name)
    place = _inside(position.place, [axis.size for axis in axes], index_of(axes, Place()))
    stored = view_of(trace, name, session.labels, head=place.head)
    place = place.within(stored)
    view = without_hidden(session, stored, view_state.hidden)
    tile = first_tile(trace, view, place)
    is_whole = view is stored
    low, high = _range(session, name, tile, shared=view_state.shared_scale) if is_whole else tile_extremes(tile.values)
    scale = scale_for(view.kind, low, high)
    overlay = None
    if session.overlay.kind != "nothing":
        overlay = overlay_of(session, view, place, shown, report)
        if overlay is not None and shown not in ("both", "value"):
            place = place.within(overlay.view)
    if overlay is not None and shown == "both" and session.overlay.kind == "trace":
        scale = overlay.scale
    cell = cell_of(session, name, place, shown, view_state.hidden)
    remark = "" if is_whole else view_state.hidden.text
    near = () if has_neighbours(session, name) else None
    return Scene(view, scale, tile, place, cell.working, seconds, overlay, shown, cell.values, remark, near)


def scene_cost(session: Session, name: str, *, shared: bool) -> int:
    """About how many operations it takes to gather a scene: what is to be computed, and looking through it."""
    own = _own_cost(session, name, shared=shared)
    return own if session.overlay.kind == "nothing" else own + _overlay_cost(session, name)


def _overlay_cost(session: Session, name: str) -> int:
    """The overlay: a backward pass is about two forward passes, after one."""
    program = session.trace.program
    if session.overlay.kind == "gradient":
        return 0 if session.went_back else 3 * sum(map(program.flops, program.steps))
    other = session.other.trace
    steps = [name] if name in other.program.by_name else []
    return other.pending(steps) + SCAN_COST * sum(math.prod(other.program.shape(each)) for each in steps)


def _own_cost(session: Session, name: str, *, shared: bool) -> int:
    trace = session.trace
    names = _same_kind(trace, name) if shared else (name,)
    whole = [each for each in names if _is_whole(trace, each)]
    steps = [each for each in whole if each in trace.program.by_name]
    unknown = [each for each in whole if not session.knows_extremes(each)]
    looked_through = SCAN_COST * sum(math.prod(trace.program.shape(each)) for each in unknown)
    return trace.pending(steps) + looked_through + (0 if name in whole else _cost_of_part(trace, name))


def _is_whole(trace: Trace, name: str) -> bool:
    """Whether a step is kept, so that all of it is looked through; weights and inputs always are."""
    return name not in trace.program.by_name or name in trace.plan.names


def _cost_of_part(trace: Trace, name: str) -> int:
    """Cost of drawing a part of a step that is not kept: its inputs, and the cells themselves."""
    *heads, rows, columns = (1, 1, *trace.program.shape(name))[-3:]
    height, width = first_size(trace.program.axes(name)[-1].name)
    share = min(height, rows) / rows / math.prod(heads)
    return trace.pending_part(name, share) + SCAN_COST * min(height, rows) * min(width, columns)


def first_tile(trace: Trace, view: View, place: Place) -> Tile:
    """The whole matrix where it is in this computer's memory, else the cells around the place."""
    rows, columns = view.shape
    here = trace.backend.device == "cpu" and _is_whole(trace, view.name)
    if here and (rows * columns <= SCREENFUL**2 or _masked_step(trace, view.name) is None):
        return tile_of(trace, view, range(rows), range(columns))
    height, width = first_size(view.columns.name)
    top, left = max(place.row - height // 2, 0), max(place.column - width // 2, 0)
    return tile_of(trace, view, range(top, top + height), range(left, left + width))


def first_size(columns: str) -> tuple[int, int]:
    """Rows and columns that are fetched at first of a matrix that is not drawn whole, by what its columns are."""
    return (WORD_ROWS if columns == "vocabulary" else SCREENFUL), SCREENFUL


def tile_of(trace: Trace, view: View, rows: range, columns: range) -> Tile:
    """Cells of a view to be drawn; attention weights of masked scores, which are 0, are marked as masked."""
    tile, source = view.tile(rows, columns), _masked_step(trace, view.name)
    if source is None:
        return tile
    height, width = tile.values.shape
    heads = range(view.head or 0, (view.head or 0) + 1)
    region = heads, range(tile.row, tile.row + height), range(tile.column, tile.column + width)
    hidden = np.isneginf(trace.window(source, region)[0])
    return replace(tile, values=np.where(hidden, np.nan, tile.values)) if hidden.any() else tile


def _masked_step(trace: Trace, name: str) -> str | None:
    """The masked scores that a step of attention weights is made from."""
    step = trace.program.by_name.get(name)
    return step.inputs[0] if step is not None and is_attention(step) else None


def _range(session: Session, name: str, tile: Tile, *, shared: bool) -> tuple[float, float]:
    names = _same_kind(session.trace, name) if shared else (name,)
    ranges = [limits for each in names if (limits := session.extremes(each)) is not None]
    if not ranges:
        return tile_extremes(tile.values)
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _same_kind(trace: Trace, name: str) -> tuple[str, ...]:
    """Every step of the program with the same sublayer and last part, whatever the layer."""
    if name not in trace.program.by_name:
        return (name,)
    kind = name.split(".")[-2:]
    return tuple(step.name for step in trace.program.steps if step.name.split(".")[-2:] == kind)


def _inside(place: Place, sizes: list[int], index: tuple[int, ...]) -> Place:
    """The place with a head that the step has."""
    heads = sizes[0] if len(index) == 3 else 1
    return Place(min(place.head, heads - 1), place.row, place.column)
