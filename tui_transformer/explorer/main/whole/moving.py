"""Moving through the whole from box to box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.whole.bands import Placement
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import LOSS, TEXT, Session
from tui_transformer.views.step_view import Place
from tui_transformer.views.whole import Band, Box, bands, box_of


def standing(session: Session, position: Position) -> Position:
    """The position whose box is the current one: of the text the last step, of a weight the first row of its reader."""
    program, stop = session.trace.program, position.stop
    if stop in (TEXT, LOSS):
        return replace(position, stop=program.steps[-1].name)
    return Position(reader(program, stop), Place(position.place.head)) if stop in program.weights else position


def reader(program: Program, stop: str) -> str:
    """The first step that reads a weight, an input or another step; where none does, the stop itself."""
    return next((step.name for step in program.steps if stop in step.inputs), stop)


def neighbour_box(program: Program, placed: Sequence[Placement], stop: str, across: int, down: int) -> str:
    """The step of the box so many boxes after a step's in the order of the data, or above or below it."""
    among = bands(program, stop)
    here = box_of(among, program.aliases.get(stop, stop))
    if here is None:
        return among[0].boxes[0].shown("")
    near = (_after(among, here, across) if across else None) or (_below(among, placed, here, down) if down else None)
    return stop if near is None else near.shown("")


def _after(among: Sequence[Band], here: tuple[int, int], across: int) -> Box | None:
    boxes = [(place, number) for place, band in enumerate(among) for number in range(len(band.boxes))]
    at = boxes.index(here) + across
    return among[boxes[at][0]].boxes[boxes[at][1]] if 0 <= at < len(boxes) else None


def _below(among: Sequence[Band], placed: Sequence[Placement], here: tuple[int, int], down: int) -> Box | None:
    """The nearest box of the next bands down; where they are not on the screen, the first of the next band."""
    own = next((each for each in placed if each.band is among[here[0]]), None)
    beyond = [each for each in placed if own is not None and (each.top - own.top) * down > 0]
    if own is None or not beyond:
        return _next_band(among, here[0] + down)
    x = _middle(own, here[1])
    options = [
        (abs(each.top - own.top), abs(_middle(each, box.box) - x), each.band.boxes[box.box])
        for each in beyond
        for box in each.boxes
        if own.left <= each.left + each.width and each.left <= own.left + own.width
    ]
    return min(options, key=lambda option: option[:2])[2] if options else None


def _next_band(among: Sequence[Band], place: int) -> Box | None:
    return among[place].boxes[0] if 0 <= place < len(among) else None


def _middle(placement: Placement, box: int) -> int:
    """Twice the column of the middle of a box."""
    placed = next((each for each in placement.boxes if each.box == box), placement.boxes[0])
    return 2 * (placement.left + placed.left) + placed.width
