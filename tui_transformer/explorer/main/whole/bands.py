"""Where the bands of the whole lie on the screen, and which boxes they have room for. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.cells import cell_len

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.whole.ladder import ladder_columns
from tui_transformer.explorer.main.whole.names import band_title, shape, symbol
from tui_transformer.explorer.main.whole.placing import (
    GAP,
    NARROWEST,
    SQUEEZED,
    USUAL,
    Heights,
    Placed,
    Wish,
    fit,
    heights,
    shared,
    window,
)
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import Session
from tui_transformer.views.whole import ANSWER, Band, Box, bands, heads_of

TOKENS_WIDTH, ANSWER_WIDTH, VOCABULARY_WIDTH = 15, 36, 19

LONGEST_SCORES = 14
"""Columns that the name of the scores is given at least; what was done to them may be cut."""
MOST_HEAD = 16
"""Columns of one head's picture at most, where all heads are shown."""

SIDE_BY_SIDE, TWO_STACKS, WITH_VOCABULARY = 90, 130, 76
"""Columns from which feed-forward and answer share a line, from which two stacks do, and the vocabulary and words."""

FEWEST_ROWS = 4
"""Rows that every picture shows before another band is shown, unless that is the last one."""

ENDLESS = 1 << 16
"""Lines that are more than enough."""

NARROW_BAND = 17
"""Columns of a band at least that shares a line: its title, and what a column of its picture is."""

ALL_HEADS = "softmax, all heads"


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


def place_bands(session: Session, position: Position, width: int, height: int) -> tuple[Placement, ...]:
    """The bands around a position in so many columns and lines, as many as there is room for beside the ladder."""
    return _Placing(session, position, width - ladder_columns(session.trace.program, width), height).placed


def lines_wanted(session: Session, position: Position, width: int) -> int:
    """Lines in which every band shows as much as it can."""
    placed = place_bands(session, position, width, ENDLESS)
    return max(placement.top + placement.lines for placement in placed)


@dataclass(frozen=True)
class _Placing:
    session: Session
    position: Position
    width: int
    height: int

    @cached_property
    def bands(self) -> tuple[Band, ...]:
        return bands(self.session.trace.program, self.position.stop)

    @cached_property
    def both(self) -> bool:
        """Whether there are two stacks."""
        return {"encoder", "decoder"} <= {band.stack for band in self.bands}

    @property
    def placed(self) -> tuple[Placement, ...]:
        if not self.both:
            return self._column(self.bands, 0, self.width)
        source = [band for band in self.bands if band.stack == "encoder" or band.name == "embedding"]
        target = [band for band in self.bands if band not in source]
        here = source if any(self.position.stop in band.steps for band in source) else target
        if self.width >= TWO_STACKS:
            left = (self.width - 1) * (3 if here is source else 2) // 5
            return (*self._column(source, 0, left), *self._column(target, left + 1, self.width - left - 1))
        return self._column(here, 0, self.width)

    def _column(self, among: Sequence[Band], left: int, width: int) -> tuple[Placement, ...]:
        """Bands below each other, the last ones side by side."""
        rows, sizes = self._on_screen(self._rows(among, width))
        placed, top = list[Placement](), 0
        for row in rows:
            tall, lines, count = _is_first(row), self._lines(row, sizes), self._count(row, sizes)
            if top + lines > self.height and placed:
                break
            at = left
            for band, columns in zip(row, self._shares(row, width), strict=True):
                room = columns - 4 - self._vocabulary_columns(columns) * tall
                boxes = fit([self._wish(box) for box in band.boxes], room, self._current(band))
                title = band_title(band.name, both=self.both)
                placed.append(Placement(band, title, top, at, columns, lines, boxes, count, tall))
                at += columns + 1
            top += lines
        return tuple(placed)

    def _vocabulary_columns(self, columns: int) -> int:
        """Columns of the vocabulary beside the words."""
        has_words = self.session.model.vocabulary is not None
        return VOCABULARY_WIDTH * (has_words and columns >= WITH_VOCABULARY)

    def _rows(self, among: Sequence[Band], width: int) -> list[list[Band]]:
        """Bands side by side: the feed-forward layer and those after it, where there is room."""
        rows: list[list[Band]] = []
        for band in among:
            narrow = band.name in ("output", "encoder.norm") and width >= SIDE_BY_SIDE // (1 + self.both)
            if narrow and rows and not rows[-1][0].name.endswith("embedding"):
                rows[-1].append(band)
            else:
                rows.append([band])
        return rows

    def _lines(self, row: Sequence[Band], sizes: Heights) -> int:
        """Border, titles, pictures, and the numbers of the heads."""
        rows = self._count(row, sizes)
        pictures = rows if _is_first(row) else (rows + 1) // 2
        return pictures + 3 + any(map(self._numbered, row))

    def _count(self, row: Sequence[Band], sizes: Heights) -> int:
        """Rows of the pictures: no more than there are, as where the target is shorter than the source."""
        most = sizes.tokens if _is_first(row) else sizes.rows
        answers = any(box.steps[-1] in ANSWER for band in row for box in band.boxes)
        return most if answers else min(most, max(map(self._tokens, row)))

    def _numbered(self, band: Band) -> bool:
        """Whether there are several heads beside each other."""
        program = self.session.trace.program
        return any(
            heads_of(program.axes(box.steps[-1])) > 1 and all_heads(program, box.steps[-1]) for box in band.boxes
        )

    def _on_screen(self, rows: list[list[Band]]) -> tuple[list[list[Band]], Heights]:
        """All rows of bands where every picture has room for some rows, else those around the current one."""
        here = next((i for i, row in enumerate(rows) if any(self.position.stop in band.steps for band in row)), 0)
        for count, least in [
            (len(rows), USUAL),
            (len(rows), SQUEEZED),
            *((n, USUAL) for n in range(len(rows) - 1, 0, -1)),
        ]:
            around = window(len(rows), here, count)
            shown = rows[around.start : around.stop]
            sizes = self._heights(rows, shown, least)
            if self._has_room(shown, sizes, least):
                break
        return shown, sizes

    def _heights(self, rows: list[list[Band]], shown: list[list[Band]], least: Heights) -> Heights:
        tokens = max(self._tokens(band) for row in rows for band in row)
        first, numbers = any(map(_is_first, shown)), sum(any(map(self._numbered, row)) for row in shown)
        sizes = heights(tokens, self.height, len(shown) - first, numbers, first=first, least=least)
        while (
            least is SQUEEZED
            and sizes.rows < tokens
            and self._fits(shown, higher := replace(sizes, rows=sizes.rows + 2))
        ):
            sizes = higher  # bands of fewer tokens leave lines to others
        return sizes

    def _fits(self, shown: list[list[Band]], sizes: Heights) -> bool:
        return sum(self._lines(row, sizes) for row in shown) <= self.height

    def _has_room(self, shown: list[list[Band]], sizes: Heights, least: Heights) -> bool:
        """Whether bands fit, and every picture has the rows that it is to have at least."""
        fewest = FEWEST_ROWS if least is USUAL else least.tokens
        return self._fits(shown, sizes) and all(
            self._count(row, sizes) >= min(*map(self._tokens, row), fewest) for row in shown
        )

    def _shares(self, row: Sequence[Band], width: int) -> list[int]:
        """The widths of bands side by side: what they need, and the rest as evenly as they want it."""
        wishes = []
        for band in row:
            boxes = [self._wish(box) for box in band.boxes]
            around = GAP * (len(boxes) - 1) + 4
            least = max(sum(box.least for box in boxes) + around, NARROW_BAND)
            wishes.append(Wish(least, max(sum(box.most for box in boxes) + around, least)))
        room = width - (len(row) - 1)
        widths = shared(wishes, room)
        return [*widths[:-1], room - sum(widths[:-1])]

    def _current(self, band: Band) -> int | None:
        return next((i for i, box in enumerate(band.boxes) if self.position.stop in box.steps), None)

    def _tokens(self, band: Band) -> int:
        program = self.session.trace.program
        steps = [box.steps[-1] for box in band.boxes if box.steps[-1] not in ANSWER]
        return max((rows_of(program.axes(step)) for step in steps if _has_tokens(program, step)), default=1)

    def _wish(self, box: Box) -> Wish:
        program, name = self.session.trace.program, box.shown("")
        axes = program.axes(name)
        if len(axes) == 1:
            return Wish(TOKENS_WIDTH - 4, TOKENS_WIDTH)
        if name in ANSWER:
            return Wish(24, ANSWER_WIDTH, 14)
        title = symbol(program, name)
        columns, heads = axes[-1].size, heads_of(axes) if all_heads(program, name) else 1
        named = min(cell_len(title), LONGEST_SCORES if program.step(name).square else cell_len(title))
        least = max(NARROWEST, min(columns, 6), named) if heads == 1 else max(min(heads, 8) * 7, len(ALL_HEADS))
        most = columns if heads == 1 else heads * (min(columns, MOST_HEAD) + 2)
        return Wish(least, max(least, most, cell_len(f"{title} {shape(axes)}")), _bare(heads, 8), _bare(heads, 2))


def _has_tokens(program: Program, name: str) -> bool:
    """Whether the rows of a step are those of a sequence."""
    axes = program.axes(name)
    return bool((axes[-2] if len(axes) > 1 else axes[0]).sequence)


def _is_first(row: Sequence[Band]) -> bool:
    """Whether bands have a line a token: those of words and vectors."""
    return row[0].name.endswith("embedding")


def _bare(heads: int, most: int) -> int:
    """Columns of a picture that is as narrow as can be; of all heads, of as many as are shown then."""
    return min(heads, most) * (NARROWEST + 1) - 1


def all_heads(program: Program, name: str) -> bool:
    """Whether every head of a step is drawn: of the attention weights."""
    return program.step(name).square and name.rpartition(".")[2] == "weights"


def rows_of(axes: Axes) -> int:
    """How many rows a step has."""
    return axes[-2].size if len(axes) > 1 else axes[0].size
