"""The whole around a position: where its bands lie, small pictures, words or bars in their boxes, and what is beside.

Values are read box by box, and kept; of what is not there yet there is the title alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.score import likely_at
from tui_transformer.engine.number_format import minus
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.answer_summary import answer_position, percent
from tui_transformer.session.overlay import FOLLOWS, WRONG, marks
from tui_transformer.session.position import Position, head_at
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session, gradient_cost
from tui_transformer.session.step_scene import SCAN_COST
from tui_transformer.session.store import AT_ONCE, Reading
from tui_transformer.session.view_state import Shown, Size
from tui_transformer.session.whole.layer_norms import (
    Ladder,
    Lengths,
    Rung,
    Source,
    cost_of,
    ladder_columns,
    lengths_of,
    rung_of,
    rungs,
)
from tui_transformer.session.whole.layout import MOST_HEAD, NARROWEST, Placed, Placement, place_bands
from tui_transformer.session.whole.names import Outline, outline
from tui_transformer.text.display import first_fitting
from tui_transformer.views.step_view import Labels, Place, gradient_of, pooled, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Scale, Values, View, around
from tui_transformer.views.whole import ANSWER, Band, Box, bands

NO_SCALE = Scale("diverging", -1.0, 1.0)

ROWS_AT_ONCE = 32
"""Rows whose norms are computed together: the next token's take hardly longer, and are there when it is gone to."""

BACKWARD = {"▸": "◂", "=": "◂"}
"""Signs between boxes where gradients are shown, which flow the other way."""


@dataclass(frozen=True)
class Line:
    """A line of text in a box: `marked` is the current one, `share` draws a bar, `first` puts the value first."""

    text: str
    value: str = ""
    marked: bool = False
    share: float | None = None
    first: bool = False


@dataclass(frozen=True, eq=False)
class Tiles:
    """The picture of a step.

    Attributes:
        values: A picture for each head that is shown.
        scale: What the colours stand for.
        together: How many columns of the step at most stand in one of the picture.
    """

    values: tuple[Values, ...] = ()
    scale: Scale = NO_SCALE
    together: int = 1


@dataclass(frozen=True, eq=False)
class Picture:
    """The contents of a box.

    Attributes:
        placed: Where the box is in its band.
        step: The step.
        title: Its textbook name and shape, as far as there is room.
        sign: What stands before the box.
        tiles: The picture; of every head where all are shown.
        heads: The heads that are shown, where there are several.
        rows: The rows that are shown.
        marked: The row of these that is the current token's.
        lines: Words instead of a picture.
        of: How many rows the step has.
        missing: Whether what it shows is still to come.
    """

    placed: Placed
    step: str
    title: str
    sign: str = ""
    tiles: Tiles = field(default_factory=Tiles)
    heads: range = range(1)
    rows: range = range(0)
    marked: int | None = None
    lines: tuple[Line, ...] = ()
    of: int = 0
    missing: bool = False


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
    of_gradient = session.backward and shown != "value"
    drawing = Drawing(session, session.trace.program, position, reading, of_gradient)
    placed = place_bands(session, position, size.width, size.height)
    here = next((place for place, each in enumerate(placed) if position.stop in each.band.steps), 0)
    pictures = {place: drawing.draw(placed[place]) for place in sorted(range(len(placed)), key=lambda i: abs(i - here))}
    marked = marks(session) if session.overlay.kind == "trace" else {}
    return WholeScene(
        tuple((each, pictures[place]) for place, each in enumerate(placed)),
        position.stop,
        head_at(session.trace.program, position.place.head, position.stop, ""),
        drawing.ladder(size.width, marked),
        marked,
    )


@dataclass(frozen=True, eq=False)
class Drawing:
    """Draws the bands around a position.

    Attributes:
        session: What is explored.
        program: Its program.
        position: The current step, head and row.
        reading: Gives what is there.
        of_gradient: Whether pictures are of the gradients, not of the values.
    """

    session: Session
    program: Program
    position: Position
    reading: Reading
    of_gradient: bool = False

    def draw(self, placement: Placement) -> tuple[Picture, ...]:
        """Pictures of the boxes of a band, as far as they are there: of the others the title alone."""
        pictures = []
        for placed in placement.boxes:
            if placed.box is not None:
                pictures.append(self._picture(placement, placed, placed.box))
            elif (words := self._vocabulary(placement, placed)) is not None:
                pictures.append(words)
        return tuple(pictures)

    def ladder(self, width: int, marked: Mapping[str, str]) -> Ladder:
        """The layers with the norms of the current token, the nearest to the current one asked for first."""
        program = self.program
        if not (columns := ladder_columns(program, width)):
            return Ladder()
        here, every = rung_of(program, self.position.stop), rungs(program)
        place = next((place for place, rung in enumerate(every) if rung.layer == here), len(every) - 1)
        nearest = sorted(every, key=lambda rung: abs(every.index(rung) - place))
        lengths = {rung.layer: each for rung in nearest if (each := self._lengths(rung)) is not None}
        steps = {name: mark for name, mark in marked.items() if name in program.by_name}
        layers = {rung_of(program, name): sign for sign in (FOLLOWS, WRONG) for name in steps if steps[name] == sign}
        return Ladder(every, lengths, here, columns, layers, of_gradient=self.of_gradient)

    def _lengths(self, rung: Rung) -> Lengths | None:
        session, row = self.session, self._row_here(outline(self.program, rung.stream))
        rows = range(row // ROWS_AT_ONCE * ROWS_AT_ONCE, (row // ROWS_AT_ONCE + 1) * ROWS_AT_ONCE)
        what = "rung", rows.start, self.of_gradient
        cost = partial(gradient_cost, session) if self.of_gradient else partial(cost_of, session.trace, rung, len(rows))
        lengths = self.reading.get(
            session, rung.stream, what, cost, lambda report: lengths_of(self._source(report), rung, rows)
        )
        return None if lengths is None else tuple(lengths[row - rows.start].tolist())

    def _source(self, report: Report) -> Source:
        """Reads a view of a step: of its values, or of its gradients, which are computed if they are not there."""
        trace = self.session.trace
        if not self.of_gradient:
            return partial(view_of, trace, labels=Labels())
        gradients = self.session.go_back(report).values

        def gradient(name: str, *, head: int = 0) -> View:
            if name not in gradients:
                raise InputError(f"{name} has no gradient")
            return gradient_of(view_of(trace, name, Labels(), head=head), trace.program.axes(name), gradients[name])

        return gradient

    # Boxes

    def _picture(self, placement: Placement, placed: Placed, box: Box) -> Picture:
        session, stop = self.session, self.position.stop
        name = stop if stop in box.steps else box.last
        sign = BACKWARD.get(box.sign, box.sign) if self.of_gradient else box.sign
        if self.of_gradient and name not in session.stops:  # a step of the box that has a gradient, if any has
            name = next((each for each in reversed(box.steps) if each in session.stops), name)
        step = outline(self.program, name)
        here = self._row_here(step)
        first = max(min(here // max(placement.rows, 1) * placement.rows, step.rows - placement.rows), 0)
        rows = range(first, min(first + placement.rows, step.rows))  # others only where the current one leaves them
        if step.is_vector and step.sequence in session.sequences and self.program.step(name).op.integer:
            tokens, labels = session.sequences[step.sequence].tokens, session.labels.sequences[step.sequence]
            ids = (Line(labels[row], str(tokens[row].id), marked=row == here) for row in rows)
            return Picture(placed, name, "token     ID", rows=rows, lines=tuple(ids))
        if self.of_gradient and name not in session.stops:
            return Picture(placed, name, step.title, sign, lines=(Line("no gradient"),))
        if name in ANSWER and not self.of_gradient:
            lines = self._answer(name, max(placement.lines - 3, 1))
            return Picture(placed, name, "most likely", sign, lines=lines or (), missing=lines is None)
        head = min(head_at(self.program, self.position.place.head, self.position.stop, name), step.heads - 1)
        heads, columns = range(head, head + 1), placed.width
        title = "∂ " * self.of_gradient + step.title
        titles: tuple[str, ...] = (f"{title} {step.shape}", title)
        if step.every_head:
            # as many heads as have room, the current one among them
            columns = min(step.columns, MOST_HEAD, max((placed.width + 1) // step.heads - 1, NARROWEST))
            heads = around(head, step.heads, max((placed.width + 1) // (columns + 1), 1))
            part = f"{heads.start}–{heads.stop - 1} of {step.heads}"
            titles = (f"{title}, heads {part}", f"heads {part}", part)
            if len(heads) == step.heads:
                titles = (f"{title}, all heads" if step.heads > 1 else title, title)
        tiles = self._tiles(name, rows, heads, columns, step)
        counts_tokens = step.sequence or name == self.position.stop
        return Picture(
            placed,
            name,
            first_fitting(titles, placed.width),
            sign,
            tiles or Tiles(),
            heads,
            rows,
            marked=here - rows.start if here in rows and counts_tokens else None,
            of=step.rows,
            missing=tiles is None,
        )

    def _row_here(self, step: Outline) -> int:
        """The row of the current token: the row or the column of the current step that stands for the same sequence.

        The vocabulary has more rows than the sentence: there it is the last at most.
        """
        program, stop, place = self.program, self.position.stop, self.position.place
        own = outline(program, stop) if stop in program.by_name or stop in program.aliases else step
        if own.sequence == step.sequence:
            return min(place.row, step.rows - 1)
        return min(place.column, step.rows - 1) if own.across == step.sequence else 0

    def _tiles(self, name: str, rows: range, heads: range, columns: int, step: Outline) -> Tiles | None:
        """The pictures of some heads of a step; None where they are missing."""

        def make(report: Report) -> Tiles:
            report(name)
            if not self.of_gradient:
                self.session.trace.prepare(name, before=lambda step: report(step.name))
            source = self._source(report)
            views = [source(name, head=head) for head in heads]
            size = views[0].columns.size
            # all columns, of those that stand in one the entry of largest magnitude
            values = tuple(pooled(view.window(rows, range(size)), columns, axis=1) for view in views)
            limits = tile_extremes(np.concatenate([tile.ravel() for tile in values]))
            shares = step.every_head and not self.of_gradient
            scale = Scale("sequential", 0.0, 1.0) if shares else scale_for(views[0].kind, *limits)
            return Tiles(values, scale, -(-size // max(columns, 1)))

        cost = partial(gradient_cost, self.session) if self.of_gradient else partial(self._cost, name, len(rows))
        return self.reading.get(self.session, name, ("picture", rows, heads, columns, self.of_gradient), cost, make)

    def _cost(self, name: str, rows: int) -> int:
        """About how many operations it takes to have the rows of a step that are drawn, and to look through them."""
        step = outline(self.program, name)
        cells = step.heads * rows * step.columns
        return self.session.trace.pending_part(name, min(rows / step.rows, 1.0), AT_ONCE) + SCAN_COST * cells

    # Words

    def _vocabulary(self, placement: Placement, placed: Placed) -> Picture | None:
        """The words of the sentence in the vocabulary, beside the boxes of the first band."""
        step = outline(self.program, placement.band.boxes[0].steps[0])
        title, entries = self.session.cache.tokens.made(
            f"entries {step.sequence}", lambda: _entries(self.session, step)
        )
        if not title:
            return None
        ids, current = list(entries), self.session.sequences[step.sequence].tokens[self._row_here(step)].id
        shown = around(ids.index(current), len(ids), placement.rows)
        lines = (Line(entries[each], str(each), each == current, first=True) for each in ids[shown.start : shown.stop])
        return Picture(placed, VOCABULARY, title, lines=tuple(lines))

    def _answer(self, name: str, count: int) -> tuple[Line, ...] | None:
        trace, model, logits = self.session.trace, self.session.model, name == "output.logits"

        def make(report: Report) -> tuple[Line, ...]:
            trace.prepare(name, before=lambda step: report(step.name))
            likely = likely_at(trace, answer_position(self.session), count)
            lines = []
            for place, each in enumerate(likely):
                value = minus(f"{each.logit:.2f}") if logits else percent(each.probability)
                lines.append(Line(model.target_label(each.token), value, marked=place == 0, share=each.probability))
            return tuple(lines)

        return self.reading.get(self.session, name, ("answer", count), partial(self._cost, name, 1), make)


def _entries(session: Session, step: Outline) -> tuple[str, dict[int, str]]:
    """How large the vocabulary of a step's tokens is, "" where they have no words; and the words of the sentence."""
    words = session.words_of(step.sequence)
    if words is None:
        return "", {}
    ids = sorted({token.id for token in session.sequences[step.sequence].tokens})
    named = {each: words.label(words.word(each)) if each < words.size else str(each) for each in ids}
    return f"vocabulary {words.size:,}", named


# From box to box


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
    among, name = bands(program, stop), program.aliases.get(stop, stop)
    boxes = [box for band in among for box in band.boxes]
    here = next((place for place, box in enumerate(boxes) if name in box.steps), None)
    if here is None:
        return boxes[0].last
    if across and 0 <= here + across < len(boxes):
        return boxes[here + across].last
    below = _below(among, placed, boxes[here], down) if down else None
    return stop if below is None else below.last


def _below(among: Sequence[Band], placed: Sequence[Placement], here: Box, down: int) -> Box | None:
    """The nearest box of the next bands down; where they are not on the screen, the first of the next band."""
    own = next((each for each in placed if here in each.band.boxes), None)
    beyond = [each for each in placed if own is not None and (each.top - own.top) * down > 0]
    if own is None or not beyond:
        place = next(place for place, band in enumerate(among) if here in band.boxes) + down
        return among[place].boxes[0] if 0 <= place < len(among) else None
    inside = next((each for each in own.boxes if each.box == here), own.boxes[0])
    middle = 2 * (own.left + inside.left) + inside.width
    options = [
        (abs(each.top - own.top), abs(2 * (each.left + placed.left) + placed.width - middle), placed.box)
        for each in beyond
        for placed in each.boxes
        if placed.box and own.left <= each.left + each.width and each.left <= own.left + own.width
    ]
    return min(options, key=lambda option: option[:2])[2] if options else None
