"""Bands ready to be drawn: where each lies, and what its boxes show. Pictures are read band by band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rich.cells import cell_len

from tui_transformer.analysis.answer import likely_at
from tui_transformer.analysis.effects import answer_positions
from tui_transformer.engine.axis import Axes
from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.whole.names import band_title, shape, symbol
from tui_transformer.explorer.main.whole.placing import (
    GAP,
    NARROWEST,
    Heights,
    Placed,
    Wish,
    fit,
    heights,
    shared,
    window,
)
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.text.display import token_label
from tui_transformer.views.step_view import scale_for, tile_extremes
from tui_transformer.views.view import Scale, Values
from tui_transformer.views.whole import ANSWER, Band, Box, bands, heads_of, sketch

TOKENS_WIDTH, ANSWER_WIDTH = 15, 26
MOST_HEAD = 16
"""Columns of one head's picture at most, where all heads are shown."""

SIDE_BY_SIDE, TWO_STACKS = 100, 150
"""Columns from which feed-forward and answer share a line of bands, and from which two stacks do."""

LEAST_WORDS = 16
"""Columns that entries of the vocabulary need."""

ALL_HEADS = "softmax, all heads"
NO_SCALE = Scale("diverging", -1.0, 1.0)


@dataclass(frozen=True)
class Placement:
    """A band on the screen: its first line and column, its size with border, its boxes inside, and rows it shows."""

    band: Band
    title: str
    top: int
    left: int
    width: int
    lines: int
    boxes: tuple[Placed, ...]
    rows: int
    tall: bool

    @property
    def rest(self) -> int:
        """The first column inside the band that no box takes."""
        last = self.boxes[-1]
        return last.left + last.width + GAP


@dataclass(frozen=True)
class Line:
    """A line of text in a box: a mark says that it is the current one; `share` draws a bar."""

    text: str
    value: str = ""
    marked: bool = False
    share: float | None = None


@dataclass(frozen=True, eq=False)
class Picture:
    """What a box shows.

    Attributes:
        step: The step.
        title: Its textbook name and shape, as far as there is room.
        sign: What stands before the box.
        tiles: The picture; of every head where all are shown.
        first: The number of the first head that is shown.
        scale: What the colours stand for.
        marked: The row that is the current token's.
        lines: Words instead of a picture.
        together: How many columns of the step at most stand in one of the picture.
    """

    step: str
    title: str
    sign: str = ""
    tiles: tuple[Values, ...] = ()
    first: int = 0
    scale: Scale = NO_SCALE
    marked: int | None = None
    lines: tuple[Line, ...] = ()
    together: int = 1


def place_bands(session: Session, position: Position, width: int, height: int) -> tuple[Placement, ...]:
    """The bands around a position in so many columns and lines, as many as there is room for."""
    return _Placing(session, position, width, height).placed


@dataclass(frozen=True)
class _Placing:
    session: Session
    position: Position
    width: int
    height: int

    @cached_property
    def found(self) -> tuple[Band, ...]:
        return bands(self.session.trace.program, self.position.stop)

    @cached_property
    def both(self) -> bool:
        """Whether there are two stacks."""
        return {"encoder", "decoder"} <= {band.stack for band in self.found}

    @property
    def placed(self) -> tuple[Placement, ...]:
        if not self.both:
            return self._column(self.found, 0, self.width)
        source = [band for band in self.found if band.stack == "encoder" or band.name == "embedding"]
        target = [band for band in self.found if band not in source]
        if self.width >= TWO_STACKS:
            half = (self.width - 1) // 2
            return (*self._column(source, 0, half), *self._column(target, half + 1, self.width - half - 1))
        here = source if any(self.position.stop in band.steps for band in source) else target
        return self._column(here, 0, self.width)

    def _column(self, found: Sequence[Band], left: int, width: int) -> tuple[Placement, ...]:
        """Bands below each other, the last ones side by side."""
        rows = self._rows(found, width)
        tokens = max((self._tokens(band) for band in found), default=1)
        first = next((band for band in found if band.name.endswith("embedding")), None)
        numbers = sum(any(map(self._numbered, row)) for row in rows)
        sizes = heights(tokens, self.height, len(rows) - (first is not None), numbers)
        placed, top = list[Placement](), 0
        for row in self._on_screen(rows, sizes):
            tall = row[0] is first
            lines = self._lines(row, sizes)
            if top + lines > self.height and placed:
                break
            count = sizes.tokens if tall else sizes.rows
            at = left
            for band, columns in zip(row, self._shares(row, width), strict=True):
                boxes = fit([self._wish(box) for box in band.boxes], columns - 4, self._current(band))
                title = band_title(band.name, both=self.both)
                placed.append(Placement(band, title, top, at, columns, lines, boxes, count, tall))
                at += columns + 1
            top += lines
        return tuple(placed)

    def _rows(self, found: Sequence[Band], width: int) -> list[list[Band]]:
        """What stands side by side: the feed-forward layer and what comes after it, where there is room."""
        rows: list[list[Band]] = []
        for band in found:
            narrow = band.name in ("output", "encoder.norm") and width >= SIDE_BY_SIDE // (1 + self.both)
            if narrow and rows and not rows[-1][0].name.endswith("embedding"):
                rows[-1].append(band)
            else:
                rows.append([band])
        return rows

    def _lines(self, row: Sequence[Band], sizes: Heights) -> int:
        """Border, titles, pictures, and the numbers of the heads."""
        pictures = sizes.tokens if row[0].name.endswith("embedding") else (sizes.rows + 1) // 2
        return pictures + 3 + any(map(self._numbered, row))

    def _numbered(self, band: Band) -> bool:
        """Whether there are several heads beside each other."""
        program = self.session.trace.program
        return any(
            heads_of(program.axes(box.steps[-1])) > 1 and _all_heads(program, box.steps[-1]) for box in band.boxes
        )

    def _on_screen(self, rows: list[list[Band]], sizes: Heights) -> list[list[Band]]:
        """The rows of bands from the one that is scrolled to: all of them, or those around the current one."""
        lines = [self._lines(row, sizes) for row in rows]
        here = next((i for i, row in enumerate(rows) if any(self.position.stop in band.steps for band in row)), 0)
        first = 0
        while sum(lines[first : here + 1]) > self.height and first < here:
            first += 1
        while first > 0 and sum(lines[first - 1 :]) <= self.height:
            first -= 1
        return rows[first:]

    def _shares(self, row: Sequence[Band], width: int) -> list[int]:
        """The widths of bands side by side: what they need, and the rest as evenly as they want it."""
        wishes = []
        for band in row:
            boxes = [self._wish(box) for box in band.boxes]
            around = GAP * (len(boxes) - 1) + 4
            wishes.append(Wish(sum(box.least for box in boxes) + around, sum(box.most for box in boxes) + around))
        room = width - (len(row) - 1)
        widths = shared(wishes, room)
        return [*widths[:-1], room - sum(widths[:-1])]

    def _current(self, band: Band) -> int | None:
        return next((i for i, box in enumerate(band.boxes) if self.position.stop in box.steps), None)

    def _tokens(self, band: Band) -> int:
        program = self.session.trace.program
        return max(_rows_of(program.axes(box.steps[-1])) for box in band.boxes if box.steps[-1] not in ANSWER)

    def _wish(self, box: Box) -> Wish:
        program, name = self.session.trace.program, box.shown(self.position.stop)
        axes = program.axes(name)
        if len(axes) == 1:
            return Wish(TOKENS_WIDTH - 4, TOKENS_WIDTH)
        if name in ANSWER:
            return Wish(24, ANSWER_WIDTH, 14)
        title = symbol(program, name)
        columns, heads = axes[-1].size, heads_of(axes) if _all_heads(program, name) else 1
        least = (
            max(NARROWEST, min(columns, 6), cell_len(title)) if heads == 1 else max(min(heads, 8) * 7, len(ALL_HEADS))
        )
        most = columns if heads == 1 else heads * (min(columns, MOST_HEAD) + 2)
        return Wish(least, max(least, most, cell_len(f"{title} {shape(axes)}")), _bare(heads))


def _bare(heads: int) -> int:
    """Columns of a picture that is as narrow as can be; of all heads, of as many as are shown then."""
    return min(heads, 8) * (NARROWEST + 1) - 1


def draw_band(session: Session, position: Position, placement: Placement) -> tuple[Picture, ...]:
    """What the boxes of a band show; computes the steps that are not there yet."""
    return tuple(_draw(session, position, placement, placed) for placed in placement.boxes)


def vocabulary_beside(session: Session, position: Position, placement: Placement) -> Picture | None:
    """The vocabulary's entries around the current token's, where a first band has room for them beside its boxes."""
    words = session.model.vocabulary
    room = placement.width - 4 - placement.rest
    if words is None or not placement.tall or room < LEAST_WORDS:
        return None
    tokens = session.trace.program.axes(placement.band.boxes[0].steps[0])
    sequence, here = session.sequences[tokens[0].sequence], _row_here(session, position, tokens)
    entries = sorted({token.id for token in sequence.tokens})
    current = sequence.tokens[here].id
    shown = window(len(entries), entries.index(current), placement.rows)
    lines = tuple(_entry(session, entries[place], marked=entries[place] == current) for place in shown)
    return Picture(VOCABULARY, f"vocabulary {words.size:,}", lines=lines)


def _entry(session: Session, token: int, *, marked: bool) -> Line:
    return Line(token_label(session.model.word(token)), str(token), marked=marked)


def _draw(session: Session, position: Position, placement: Placement, placed: Placed) -> Picture:
    box, trace = placement.band.boxes[placed.box], session.trace
    name = box.shown(position.stop)
    axes = trace.program.axes(name)
    title = _title(symbol(trace.program, name), shape(axes), placed.width)
    rows = window(_rows_of(axes), _row_here(session, position, axes), placement.rows)
    marked = _row_here(session, position, axes)
    if len(axes) == 1:
        return Picture(name, "token     ID", lines=_tokens(session, axes, rows, marked))
    if name in ANSWER:
        return Picture(name, "most likely", box.sign, lines=_answer(session, position, placement.lines - 3))
    all_heads = _all_heads(trace.program, name)
    heads, columns = _heads_shown(axes, placed.width, position.place.head) if all_heads else (None, placed.width)
    found = [sketch(trace, name, rows, columns, head) for head in (heads or [position.place.head])]
    tiles = tuple(each.values for each in found)
    together = found[0].together
    if heads is not None and len(heads) < axes[0].size:
        title = f"softmax, heads {heads.start} to {heads.stop - 1} of {axes[0].size}"
    elif all_heads:
        title = ALL_HEADS if axes[0].size > 1 else "softmax"
    low, high = tile_extremes(np.concatenate([tile.ravel() for tile in tiles]))
    scale = Scale("sequential", 0.0, 1.0) if all_heads else scale_for(found[0].kind, low, high)
    inside = marked - rows.start if marked in rows else None
    return Picture(name, title, box.sign, tiles, heads.start if heads else 0, scale, inside, together=together)


def _all_heads(program: Program, name: str) -> bool:
    """Whether every head of a step is drawn: of the attention weights."""
    return program.step(name).square and name.rpartition(".")[2] == "weights"


def _heads_shown(axes: Axes, width: int, head: int) -> tuple[range, int]:
    """The heads that have room, the current one among them, and the columns of each."""
    heads, keys = axes[0].size, axes[-1].size
    columns = min(keys, MOST_HEAD, max((width + 1) // heads - 1, NARROWEST))
    fitting = max((width + 1) // (columns + 1), 1)
    return window(heads, head, fitting), columns


def _title(name: str, size: str, width: int) -> str:
    return f"{name} {size}" if cell_len(f"{name} {size}") <= width else name


def _rows_of(axes: Axes) -> int:
    return axes[-2].size if len(axes) > 1 else axes[0].size


def _row_here(session: Session, position: Position, axes: Axes) -> int:
    """The row of the current token, where the rows stand for the same sequence as those of the current step."""
    program, row_axis = session.trace.program, axes[-2] if len(axes) > 1 else axes[0]
    known = position.stop in program.by_name or position.stop in program.aliases
    own = program.axes(position.stop) if known else ()
    own_rows = own[-2] if len(own) > 1 else own[0] if own else row_axis
    return position.place.row if own_rows.sequence == row_axis.sequence else 0


def _tokens(session: Session, axes: Axes, rows: range, marked: int) -> tuple[Line, ...]:
    sequence = session.sequences[axes[0].sequence]
    return tuple(
        Line(token_label(sequence.tokens[row].text), str(sequence.tokens[row].id), marked=row == marked) for row in rows
    )


def _answer(session: Session, position: Position, count: int) -> tuple[Line, ...]:
    """The most likely words where the model answers."""
    trace = session.trace
    row = answer_positions(trace, folder=session.model.folder).start
    found = likely_at(trace, row, max(count, 1))
    logits = position.stop == "output.logits"
    return tuple(
        Line(
            token_label(session.model.word(each.token)),
            f"{each.logit:.2f}" if logits else _share(each.probability),
            marked=place == 0,
            share=each.probability,
        )
        for place, each in enumerate(found)
    )


def _share(share: float) -> str:
    return f"{share:.1%}" if share >= 0.0001 else "<0.01 %"
