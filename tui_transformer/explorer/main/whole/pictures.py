"""The contents of the boxes of the whole: small pictures, words, bars. Values are read box by box, and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from rich.cells import cell_len

from tui_transformer.analysis.answer import likely_at
from tui_transformer.analysis.effects import answer_positions
from tui_transformer.engine.axis import Axes
from tui_transformer.engine.spoken import minus
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.main.whole.bands import MOST_HEAD, Placement, all_heads, rows_of
from tui_transformer.explorer.main.whole.ladder import Lengths, Rung, cost_of, lengths_of, rung_of
from tui_transformer.explorer.main.whole.names import shape, symbol
from tui_transformer.explorer.main.whole.placing import NARROWEST, Placed, page, window
from tui_transformer.explorer.state.answer import percent
from tui_transformer.explorer.state.heads import head_at
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.text.vocabulary import Vocabulary
from tui_transformer.views.step_view import scale_for, tile_extremes
from tui_transformer.views.view import Scale, Values
from tui_transformer.views.whole import ANSWER, sketch

Made = TypeVar("Made")
Report = Callable[[str], None]

LEAST_WORDS = 16
"""Columns that entries of the vocabulary need."""

SCAN_COST = 4
"""Operations that it takes to make a picture, per cell that it is made from."""

MOST_KEPT = 512
"""Pictures that are kept."""

NO_SCALE = Scale("diverging", -1.0, 1.0)


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


NOTHING = Tiles((), NO_SCALE, 1)


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


@dataclass(eq=False)
class Album:
    """Values that were read of one trace, kept as long as that is shown."""

    trace: Trace
    _made: dict[Any, Any] = field(default_factory=dict)

    def get(self, key: Any, make: Callable[[], Made]) -> Made:
        """The picture that is kept under a key, made if it is not there."""
        if key not in self._made:
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    def known(self, key: Any) -> Any:
        """The picture that is kept under a key; None where there is none."""
        return self._made.get(key)

    def __contains__(self, key: Any) -> bool:
        return key in self._made


@dataclass(frozen=True)
class Drawing:
    """Draws the bands around a position.

    Attributes:
        session: What is explored.
        position: The current step, head and row.
        album: What was read before.
    """

    session: Session
    position: Position
    album: Album

    def is_ready(self, placement: Placement) -> bool:
        """Whether everything that a band shows was read before."""
        return all(key in self.album for key in self._keys(placement) if key is not None)

    def cost(self, placement: Placement) -> int:
        """About how many operations it takes to draw a band."""
        names = [self._shown(placement, placed) for placed in placement.boxes]
        return sum(_cost(self.album.trace, name, placement.rows) for name in names)

    def draw(self, placement: Placement, report: Report = lambda _: None) -> tuple[Picture, ...]:
        """Pictures of the boxes of a band; values that are missing are computed."""
        pictures = [self._draw(placement, placed, report) for placed in placement.boxes]
        words = self._words_in_vocabulary(placement)
        return (*pictures, *([words] if words is not None else []))

    # The ladder

    def lengths(self, rung: Rung) -> Lengths | None:
        """The norms of a rung at the current token, if they were read before."""
        known: Lengths | None = self.album.known(self._rung_key(rung))
        return known

    def cost_of_rung(self, rung: Rung) -> int:
        """About how many operations it takes to read a rung."""
        return cost_of(self.album.trace, rung)

    def climb(self, missing: Sequence[Rung], report: Report) -> dict[str, Lengths]:
        """The norms of rungs at the current token; what is missing is computed."""
        by_layer = {}
        for rung in missing:
            report(rung.layer)
            row, key = self._rung_row(rung), self._rung_key(rung)
            by_layer[rung.layer] = self.album.get(key, partial(lengths_of, self.album.trace, rung, row))
        return by_layer

    def _rung_key(self, rung: Rung) -> tuple[str, int]:
        return rung.stream, self._rung_row(rung)

    def _rung_row(self, rung: Rung) -> int:
        return self._row_here(self.album.trace.program.axes(rung.stream))

    # Boxes

    def _shown(self, placement: Placement, placed: Placed) -> str:
        return placement.band.boxes[placed.box].shown(self.position.stop)

    def _keys(self, placement: Placement) -> list[Any]:
        return [self._key(placement, placed) for placed in placement.boxes]

    def _key(self, placement: Placement, placed: Placed) -> Any:
        """Key of the picture of a box, all that it depends on; None where it costs nothing."""
        name = self._shown(placement, placed)
        axes = self.session.trace.program.axes(name)
        if self._is_words(name):
            return None
        if name in ANSWER:
            return name, placement.lines
        rows, (heads, columns) = self._rows(axes, placement), self._heads(axes, name, placed.width)
        return name, rows, heads, columns

    def _is_words(self, name: str) -> bool:
        """Whether a step is the tokens."""
        program = self.session.trace.program
        axes = program.axes(name)
        return len(axes) == 1 and program.step(name).op.integer and axes[0].sequence in self.session.sequences

    def _draw(self, placement: Placement, placed: Placed, report: Report) -> Picture:
        name, box, trace = self._shown(placement, placed), placement.band.boxes[placed.box], self.album.trace
        axes, key = trace.program.axes(name), self._key(placement, placed)
        rows, here = self._rows(axes, placement), self._row_here(axes)
        if key is None:
            return Picture(name, "token     ID", rows=rows, lines=self._tokens(axes, rows, here))
        report(name)
        if name in ANSWER:
            lines = self.album.get(key, lambda: self._answer(name, max(placement.lines - 3, 1)))
            return Picture(name, "most likely", box.sign, lines=lines)
        _, _, heads, columns = key
        tiles = self.album.get(key, lambda: _tiles(trace, name, rows, heads, columns, report))
        counts_tokens = (axes[-2] if len(axes) > 1 else axes[0]).sequence or name == self.position.stop
        marked = here - rows.start if here in rows and counts_tokens else None
        title = _title(trace, name, axes, heads, placed.width)
        return Picture(name, title, box.sign, tiles, heads, rows, marked, of=rows_of(axes))

    def _rows(self, axes: Axes, placement: Placement) -> range:
        return page(rows_of(axes), self._row_here(axes), placement.rows)

    def _heads(self, axes: Axes, name: str, width: int) -> tuple[range, int]:
        """The heads that have room, the current one among them, and the columns of each."""
        program, position = self.session.trace.program, self.position
        own = head_at(program, position.place.head, position.stop, name)
        head = min(own, axes[0].size - 1) if len(axes) == 3 else 0
        if not all_heads(program, name):
            return range(head, head + 1), width
        heads, keys = axes[0].size, axes[-1].size
        columns = min(keys, MOST_HEAD, max((width + 1) // heads - 1, NARROWEST))
        return window(heads, head, max((width + 1) // (columns + 1), 1)), columns

    def _row_here(self, axes: Axes) -> int:
        """The row of the current token: the row or the column of the current step that stands for the same sequence.

        The vocabulary has more rows than the sentence: there it is the last at most.
        """
        program, place = self.session.trace.program, self.position.place
        known = self.position.stop in program.by_name or self.position.stop in program.aliases
        own = program.axes(self.position.stop)[-2:] if known else ()
        sequence = (axes[-2] if len(axes) > 1 else axes[0]).sequence
        if not own or own[0].sequence == sequence:
            return min(place.row, rows_of(axes) - 1)
        return min(place.column, rows_of(axes) - 1) if own[-1].sequence == sequence else 0

    # Words

    def _tokens(self, axes: Axes, rows: range, here: int) -> tuple[Line, ...]:
        tokens = self.session.sequences[axes[0].sequence].tokens
        label = self.session.model.label
        return tuple(Line(label(tokens[row].text), str(tokens[row].id), marked=row == here) for row in rows)

    @property
    def here(self) -> str:
        """The layer of the current step."""
        return rung_of(self.session.trace.program, self.position.stop)

    def _words_in_vocabulary(self, placement: Placement) -> Picture | None:
        """The words of the sentence in the vocabulary, where a first band has room for them beside its boxes."""
        axes = self.session.trace.program.axes(placement.band.boxes[0].steps[0])
        words, room = self.session.words_of(axes[0].sequence), placement.width - 4 - placement.rest
        if words is None or not placement.tall or room < LEAST_WORDS:
            return None
        tokens = self.session.sequences[axes[0].sequence].tokens
        entries, current = sorted({token.id for token in tokens}), tokens[self._row_here(axes)].id
        shown = window(len(entries), entries.index(current), placement.rows)
        lines = tuple(self._entry(words, entries[place], marked=entries[place] == current) for place in shown)
        return Picture(VOCABULARY, f"vocabulary {words.size:,}", lines=lines)

    def _entry(self, words: Vocabulary, token: int, *, marked: bool) -> Line:
        label = words.label(words.word(token)) if token < words.size else str(token)
        return Line(label, str(token), marked=marked, first=True)

    def _answer(self, name: str, count: int) -> tuple[Line, ...]:
        """The most likely words where the model answers."""
        trace, model = self.album.trace, self.session.model
        likely = likely_at(trace, answer_positions(trace, folder=model.folder).start, count)
        logits = name == "output.logits"
        return tuple(
            Line(
                model.target_label(each.token),
                minus(f"{each.logit:.2f}") if logits else percent(each.probability),
                marked=place == 0,
                share=each.probability,
            )
            for place, each in enumerate(likely)
        )


def _cost(trace: Trace, name: str, rows: int) -> int:
    """About how many operations it takes to have the rows of a step that are drawn, and to look through them."""
    axes = trace.program.axes(name)
    cells = math.prod((axes[0].size if len(axes) == 3 else 1, rows, axes[-1].size))
    return trace.pending_part(name, min(rows / rows_of(axes), 1.0)) + SCAN_COST * cells


def _tiles(trace: Trace, name: str, rows: range, heads: Sequence[int], columns: int, report: Report) -> Tiles:
    trace.prepare(name, before=lambda step: report(step.name))
    sketches = [sketch(trace, name, rows, columns, head) for head in heads]
    values = tuple(each.values for each in sketches)
    low, high = tile_extremes(np.concatenate([tile.ravel() for tile in values]))
    whole = all_heads(trace.program, name)
    scale = Scale("sequential", 0.0, 1.0) if whole else scale_for(sketches[0].kind, low, high)
    return Tiles(values, scale, sketches[0].together)


def _title(trace: Trace, name: str, axes: Axes, heads: range, width: int) -> str:
    """The name of a step with its shape, or with the heads that are shown."""
    title = symbol(trace.program, name)
    if not all_heads(trace.program, name):
        return _fitting(width, f"{title} {shape(axes)}", title)
    if len(heads) < axes[0].size:
        part = f"{heads.start}–{heads.stop - 1} of {axes[0].size}"
        return _fitting(width, f"{title}, heads {part}", f"heads {part}", part)
    return _fitting(width, f"{title}, all heads" if axes[0].size > 1 else title, title)


def _fitting(width: int, *texts: str) -> str:
    """The first that there is room for, else the last."""
    return next((text for text in texts if cell_len(text) <= width), texts[-1])
