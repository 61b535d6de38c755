"""The whole around a position: where its bands lie, what each shows as far as that is there, and what is beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tui_transformer.engine.program import Program
from tui_transformer.session.overlay import FOLLOWS, WRONG, marks
from tui_transformer.session.position import Position, query_head
from tui_transformer.session.session import LOSS, TEXT, Session
from tui_transformer.session.store import Reading
from tui_transformer.session.view_state import Shown, Size
from tui_transformer.session.whole.layer_norms import (
    Ladder,
    Lengths,
    Rung,
    cost_of,
    ladder_columns,
    lengths_of,
    rung_of,
    rungs,
)
from tui_transformer.session.whole.layout import Placement, place_bands
from tui_transformer.session.whole.pictures import Drawing, Picture
from tui_transformer.views.step_view import Place
from tui_transformer.views.whole import Band, Box, bands, box_of


@dataclass(frozen=True, eq=False)
class WholeScene:
    """Bands of small pictures, ready to be drawn.

    Attributes:
        bands: The bands on the screen, each with the pictures of its boxes.
        stop: The current step.
        head: The current head, of the queries.
        ladder: The layers beside the bands.
        marks: Steps that are wrong beside a dump, by what that means.
    """

    bands: tuple[tuple[Placement, tuple[Picture, ...]], ...] = ()
    stop: str = ""
    head: int = 0
    ladder: Ladder = field(default_factory=Ladder)
    marks: Mapping[str, str] = field(default_factory=dict)


def whole_scene(reading: Reading, session: Session, position: Position, size: Size, shown: Shown) -> WholeScene:
    """The whole around a position in so many columns and lines; the current band is asked for first, then the nearest.

    Going back, pictures and ladder are of the gradients, as the matrix is, unless that shows the values alone.
    """
    position = standing(session, position)
    drawing = Drawing(session, position, reading, of_gradient=session.backward and shown != "value")
    placed = place_bands(session, position, size.width, size.height)
    here = next((place for place, each in enumerate(placed) if position.stop in each.band.steps), 0)
    pictures = {place: drawing.draw(placed[place]) for place in sorted(range(len(placed)), key=lambda i: abs(i - here))}
    marked = marks(session)
    return WholeScene(
        tuple((each, pictures[place]) for place, each in enumerate(placed)),
        position.stop,
        query_head(session.trace.program, position.place.head, position.stop),
        _ladder(drawing, size.width, marked),
        marked,
    )


def _ladder(drawing: Drawing, width: int, marked: Mapping[str, str]) -> Ladder:
    """The layers with the norms of the current token, the nearest to the current one asked for first."""
    program = drawing.session.trace.program
    if not (columns := ladder_columns(program, width)):
        return Ladder()
    here, every = rung_of(program, drawing.position.stop), rungs(program)
    place = next((place for place, rung in enumerate(every) if rung.layer == here), len(every) - 1)
    lengths = {rung.layer: _lengths(drawing, rung) for rung in sorted(every, key=lambda r: abs(every.index(r) - place))}
    steps = {name: mark for name, mark in marked.items() if name in program.by_name}
    layers = {rung_of(program, name): mark for name, mark in steps.items() if mark == FOLLOWS}
    layers |= {rung_of(program, name): mark for name, mark in steps.items() if mark == WRONG}
    known = {layer: each for layer, each in lengths.items() if each is not None}
    return Ladder(every, known, here, columns, layers, of_gradient=drawing.of_gradient)


def _lengths(drawing: Drawing, rung: Rung) -> Lengths | None:
    session = drawing.session
    row = drawing.row_here(session.trace.program.axes(rung.stream))
    return drawing.reading.get(
        session,
        rung.stream,
        ("rung", row, drawing.of_gradient),
        partial(cost_of, session.trace, rung) if not drawing.of_gradient else drawing.gradient_cost,
        lambda report: lengths_of(drawing.source(report), rung, row),
    )


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
        place = here[0] + down
        return among[place].boxes[0] if 0 <= place < len(among) else None
    x = _middle(own, here[1])
    options = [
        (abs(each.top - own.top), abs(_middle(each, box.box) - x), each.band.boxes[box.box])
        for each in beyond
        for box in each.boxes
        if own.left <= each.left + each.width and each.left <= own.left + own.width
    ]
    return min(options, key=lambda option: option[:2])[2] if options else None


def _middle(placement: Placement, box: int) -> int:
    placed = next((each for each in placement.boxes if each.box == box), placement.boxes[0])
    return 2 * (placement.left + placed.left) + placed.width
