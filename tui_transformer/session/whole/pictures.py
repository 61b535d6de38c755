"""The contents of the boxes of the whole: small pictures, words, bars. Values are read box by box, and kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.score import likely_at
from tui_transformer.engine.axis import Axes
from tui_transformer.engine.number_format import minus
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.position import Position, head_at
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.store import Reading, Report
from tui_transformer.session.whole.layer_norms import Source
from tui_transformer.session.whole.layout import (
    MOST_HEAD,
    NARROWEST,
    Placed,
    Placement,
    all_heads,
    page,
    row_axis,
    rows_of,
)
from tui_transformer.session.whole.names import shape, symbol
from tui_transformer.text.display import first_fitting
from tui_transformer.views.step_view import Labels, gradient_of, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Scale, Values, View, around
from tui_transformer.views.whole import ANSWER, Box, sketch

LEAST_WORDS = 16
"""Columns that entries of the vocabulary need."""

SCAN_COST = 4
"""Operations that it takes to make a picture, per cell that it is made from."""


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

    values: tuple[Values, ...]
    scale: Scale
    together: int


NOTHING = Tiles((), Scale("diverging", -1.0, 1.0), 1)


@dataclass(frozen=True, eq=False)
class Picture:
    """The contents of a box.

    Attributes:
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

    step: str
    title: str
    sign: str = ""
    tiles: Tiles = NOTHING
    heads: range = range(1)
    rows: range = range(0)
    marked: int | None = None
    lines: tuple[Line, ...] = ()
    of: int = 0
    missing: bool = False


@dataclass(frozen=True, eq=False)
class Drawing:
    """Draws the bands around a position.

    Attributes:
        session: What is explored.
        position: The current step, head and row.
        reading: Gives what is there.
        of_gradient: Whether pictures are of the gradients, not of the values.
    """

    session: Session
    position: Position
    reading: Reading
    of_gradient: bool = False

    def draw(self, placement: Placement) -> tuple[Picture, ...]:
        """Pictures of the boxes of a band, as far as they are there: of the others the title alone."""
        pictures = [self._draw(placement, placed) for placed in placement.boxes]
        words = self._words_in_vocabulary(placement)
        return (*pictures, *([words] if words is not None else []))

    def source(self, report: Report) -> Source:
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

    def gradient_cost(self) -> int:
        """About how many operations it takes to have all gradients."""
        program = self.session.trace.program
        return 0 if self.session.went_back else 3 * sum(map(program.flops, program.steps))

    # Boxes

    def _shown(self, box: Box) -> str:
        """The step that a box shows: going back, one that has a gradient."""
        name = box.shown(self.position.stop)
        if not self.of_gradient or name in self.session.stops:
            return name
        return next((each for each in reversed(box.steps) if each in self.session.stops), name)

    def _draw(self, placement: Placement, placed: Placed) -> Picture:
        box, program = placement.band.boxes[placed.box], self.session.trace.program
        name = self._shown(box)
        axes = program.axes(name)
        here = self.row_here(axes)
        rows = page(rows_of(axes), here, placement.rows)
        if len(axes) == 1 and program.step(name).op.integer and axes[0].sequence in self.session.sequences:
            return Picture(name, "token     ID", rows=rows, lines=self._tokens(axes, rows, here))
        if self.of_gradient and name not in self.session.stops:
            return Picture(name, symbol(program, name), box.sign, lines=(Line("no gradient"),))
        if name in ANSWER and not self.of_gradient:
            lines = self._answer(name, max(placement.lines - 3, 1))
            return Picture(name, "most likely", box.sign, lines=lines or (), missing=lines is None)
        heads, columns = self._heads(axes, name, placed.width)
        tiles = self._tiles(name, rows, heads, columns)
        counts_tokens = row_axis(axes).sequence or name == self.position.stop
        marked = here - rows.start if here in rows and counts_tokens else None
        title = _title(program, name, axes, heads, placed.width, of_gradient=self.of_gradient)
        shown = NOTHING if tiles is None else tiles
        return Picture(name, title, box.sign, shown, heads, rows, marked, of=rows_of(axes), missing=tiles is None)

    def _tiles(self, name: str, rows: range, heads: range, columns: int) -> Tiles | None:
        """The pictures of some heads of a step; None where they are missing."""

        def make(report: Report) -> Tiles:
            report(name)
            if not self.of_gradient:
                self.session.trace.prepare(name, before=lambda step: report(step.name))
            whole = all_heads(self.session.trace.program, name) and not self.of_gradient
            return _tiles(self.source(report), name, rows, heads, columns, whole=whole)

        cost = self.gradient_cost if self.of_gradient else partial(_cost, self.session.trace, name, len(rows))
        what = ("picture", rows, heads, columns, self.of_gradient)
        return self.reading.get(self.session, name, what, cost, make)

    def _heads(self, axes: Axes, name: str, width: int) -> tuple[range, int]:
        """The heads that have room, the current one among them, and the columns of each."""
        program, position = self.session.trace.program, self.position
        own = head_at(program, position.place.head, position.stop, name)
        head = min(own, axes[0].size - 1) if len(axes) == 3 else 0
        if not all_heads(program, name):
            return range(head, head + 1), width
        heads, keys = axes[0].size, axes[-1].size
        columns = min(keys, MOST_HEAD, max((width + 1) // heads - 1, NARROWEST))
        return around(head, heads, max((width + 1) // (columns + 1), 1)), columns

    def row_here(self, axes: Axes) -> int:
        """The row of the current token: the row or the column of the current step that stands for the same sequence.

        The vocabulary has more rows than the sentence: there it is the last at most.
        """
        program, place = self.session.trace.program, self.position.place
        known = self.position.stop in program.by_name or self.position.stop in program.aliases
        own = program.axes(self.position.stop)[-2:] if known else ()
        sequence = row_axis(axes).sequence
        if not own or own[0].sequence == sequence:
            return min(place.row, rows_of(axes) - 1)
        return min(place.column, rows_of(axes) - 1) if own[-1].sequence == sequence else 0

    # Words

    def _tokens(self, axes: Axes, rows: range, here: int) -> tuple[Line, ...]:
        tokens = self.session.sequences[axes[0].sequence].tokens
        label = self.session.model.label
        return tuple(Line(label(tokens[row].text), str(tokens[row].id), marked=row == here) for row in rows)

    def _words_in_vocabulary(self, placement: Placement) -> Picture | None:
        """The words of the sentence in the vocabulary, where a first band has room for them beside its boxes."""
        axes = self.session.trace.program.axes(placement.band.boxes[0].steps[0])
        words, room = self.session.words_of(axes[0].sequence), placement.width - 4 - placement.rest
        if words is None or not placement.tall or room < LEAST_WORDS:
            return None
        tokens = self.session.sequences[axes[0].sequence].tokens
        entries, current = sorted({token.id for token in tokens}), tokens[self.row_here(axes)].id
        shown = around(entries.index(current), len(entries), placement.rows)
        lines = [
            Line(
                words.label(words.word(token)) if token < words.size else str(token),
                str(token),
                marked=token == current,
                first=True,
            )
            for token in entries[shown.start : shown.stop]
        ]
        return Picture(VOCABULARY, f"vocabulary {words.size:,}", lines=tuple(lines))

    def _answer(self, name: str, count: int) -> tuple[Line, ...] | None:
        """The most likely words where the model answers."""
        session = self.session
        trace, model, logits = session.trace, session.model, name == "output.logits"

        def make(report: Report) -> tuple[Line, ...]:
            trace.prepare(name, before=lambda step: report(step.name))
            likely = likely_at(trace, answer_positions(trace, folder=model.folder).start, count)
            return tuple(
                Line(
                    model.target_label(each.token),
                    minus(f"{each.logit:.2f}") if logits else percent(each.probability),
                    marked=place == 0,
                    share=each.probability,
                )
                for place, each in enumerate(likely)
            )

        return self.reading.get(session, name, ("answer", count), partial(_cost, trace, name, 1), make)


def _cost(trace: Trace, name: str, rows: int) -> int:
    """About how many operations it takes to have the rows of a step that are drawn, and to look through them."""
    axes = trace.program.axes(name)
    cells = math.prod((axes[0].size if len(axes) == 3 else 1, rows, axes[-1].size))
    return trace.pending_part(name, min(rows / rows_of(axes), 1.0)) + SCAN_COST * cells


def _tiles(source: Source, name: str, rows: range, heads: range, columns: int, *, whole: bool) -> Tiles:
    """Pictures of some heads; `whole` says that their colours stand for shares from 0 to 1."""
    sketches = [sketch(source(name, head=head), rows, columns) for head in heads]
    values = tuple(each.values for each in sketches)
    low, high = tile_extremes(np.concatenate([tile.ravel() for tile in values]))
    scale = Scale("sequential", 0.0, 1.0) if whole else scale_for(sketches[0].kind, low, high)
    return Tiles(values, scale, sketches[0].together)


def _title(program: Program, name: str, axes: Axes, heads: range, width: int, *, of_gradient: bool) -> str:
    """The name of a step with its shape, or with the heads that are shown."""
    title = "∂ " * of_gradient + symbol(program, name)
    if not all_heads(program, name):
        return first_fitting((f"{title} {shape(axes)}", title), width)
    if len(heads) < axes[0].size:
        part = f"{heads.start}–{heads.stop - 1} of {axes[0].size}"
        return first_fitting((f"{title}, heads {part}", f"heads {part}", part), width)
    return first_fitting((f"{title}, all heads" if axes[0].size > 1 else title, title), width)
