"""Where bands and boxes lie: how wide every picture is, how many rows it has, and what is left for the step in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from tui_transformer.engine.axis import Axes, Axis
from tui_transformer.engine.program import Program
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.whole.layer_norms import ladder_columns
from tui_transformer.session.whole.names import band_title, shape, symbol
from tui_transformer.text.display import cells
from tui_transformer.views.view import around
from tui_transformer.views.whole import ANSWER, Band, Box, bands, heads_of

TOKENS_WIDTH, ANSWER_WIDTH, VOCABULARY_WIDTH = 15, 36, 19

LONGEST_SCORES = 14
"""Columns that the name of the scores is given at least; what was done to them may be cut."""
MOST_HEAD = 16
"""Columns of one head's picture at most, where all heads are shown."""

SIDE_BY_SIDE, TWO_STACKS, WITH_VOCABULARY = 90, 130, 76
"""Columns from which feed-forward and answer share a line, from which two stacks do, and the vocabulary and words."""

GAP = 3
"""Columns between two boxes: a sign with a space on either side."""

NARROWEST = 4
"""Columns of a picture at least."""

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

    def place() -> tuple[Placement, ...]:
        return _Placing(session, position, width - ladder_columns(session.trace.program, width), height).placed

    return session.cache.edited.get(f"bands of {position.stop}, {width} × {height}", place)  # at every cell the same


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
                words = tall and self.session.model.vocabulary is not None and columns >= WITH_VOCABULARY
                here = next((i for i, box in enumerate(band.boxes) if self.position.stop in box.steps), 0)
                boxes = fit([self._wish(box) for box in band.boxes], columns - 4 - VOCABULARY_WIDTH * words, here)
                title = band_title(band.name, both=self.both)
                placed.append(Placement(band, title, top, at, columns, lines, boxes, count, tall))
                at += columns + 1
            top += lines
        return tuple(placed)

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
        fewer = ((count, USUAL) for count in range(len(rows) - 1, 0, -1))
        for count, least in ((len(rows), USUAL), (len(rows), SQUEEZED), *fewer):
            place = around(here, len(rows), count)
            shown = rows[place.start : place.stop]
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

    def _tokens(self, band: Band) -> int:
        program = self.session.trace.program
        every = [program.axes(box.steps[-1]) for box in band.boxes if box.steps[-1] not in ANSWER]
        return max((rows_of(axes) for axes in every if row_axis(axes).sequence), default=1)

    def _wish(self, box: Box) -> Wish:
        program, name = self.session.trace.program, box.shown("")
        axes = program.axes(name)
        if len(axes) == 1 and axes[0].sequence:
            return Wish(TOKENS_WIDTH - 4, TOKENS_WIDTH)
        if name in ANSWER:
            return Wish(24, ANSWER_WIDTH, 14)
        title = symbol(program, name)
        columns, heads = axes[-1].size, heads_of(axes) if all_heads(program, name) else 1
        named = min(cells(title), LONGEST_SCORES if program.step(name).square else cells(title))
        least = max(NARROWEST, min(columns, 6), named) if heads == 1 else max(min(heads, 8) * 7, len(ALL_HEADS))
        most = columns if heads == 1 else heads * (min(columns, MOST_HEAD) + 2)
        bare, barest = (min(heads, each) * (NARROWEST + 1) - 1 for each in (8, 2))  # where it is as narrow as can be
        return Wish(least, max(least, most, cells(f"{title} {shape(axes)}")), bare, barest)


def _is_first(row: Sequence[Band]) -> bool:
    """Whether bands have a line a token: those of words and vectors."""
    return row[0].name.endswith("embedding")


def all_heads(program: Program, name: str) -> bool:
    """Whether every head of a step is drawn: of the attention weights."""
    return program.step(name).square and name.rpartition(".")[2] == "weights"


def row_axis(axes: Axes) -> Axis:
    """The axis of the rows of a step, or the only one."""
    return axes[-2] if len(axes) > 1 else axes[0]


def rows_of(axes: Axes) -> int:
    """How many rows a step has: one number a token stands upright, a vector of the model's width lies."""
    return row_axis(axes).size if len(axes) > 1 or axes[0].sequence else 1


@dataclass(frozen=True)
class Wish:
    """How wide a box would like to be.

    Attributes:
        least: Columns that it needs to be of use.
        most: Columns at which it shows everything.
        bare: Columns with which it is drawn where room is scarce; by default as at least.
        barest: Columns without which it is not drawn at all; by default as bare.
    """

    least: int
    most: int
    bare: int = 0
    barest: int = 0


@dataclass(frozen=True)
class Placed:
    """A box in its band: its number, first column, and width."""

    box: int
    left: int
    width: int


def fit(wishes: Sequence[Wish], room: int, current: int) -> tuple[Placed, ...]:
    """Boxes side by side in so many columns: every box at its least, and what is left shared evenly up to the most.

    Where not all have room at their least they are drawn bare, and where not even that, the ones around the current
    box are.
    """
    for scarce in ("bare", "barest"):
        if _needed(wishes) > room:
            wishes = [replace(wish, least=getattr(wish, scarce) or wish.least) for wish in wishes]
    runs = (around(current, len(wishes), size) for size in range(len(wishes), 0, -1))
    shown = next((run for run in runs if _needed(wishes[run.start : run.stop]) <= room), range(current, current + 1))
    widths = shared([wishes[box] for box in shown], room - GAP * (len(shown) - 1))
    lefts = accumulate((width + GAP for width in widths), initial=0)
    return tuple(Placed(box, left, width) for box, left, width in zip(shown, lefts, widths, strict=False))


def _needed(wishes: Sequence[Wish]) -> int:
    return sum(wish.least + GAP for wish in wishes) - GAP


def shared(wishes: Sequence[Wish], room: int) -> list[int]:
    """Widths between least and most; what is left goes evenly to those that still want it."""
    widths = [min(wish.least, room) for wish in wishes]
    wanting = [place for place, wish in enumerate(wishes) if wish.most > widths[place]]
    left = room - sum(widths)
    while left > 0 and wanting:
        share = max(left // len(wanting), 1)
        for place in wanting[:left]:
            given = min(share, wishes[place].most - widths[place], left)
            widths[place] += given
            left -= given
        wanting = [place for place in wanting if wishes[place].most > widths[place]]
    return widths


def page(size: int, around: int, most: int) -> range:
    """At most so many of `size` rows, one of them among them: others are shown only where it leaves the page."""
    first = max(min(around // max(most, 1) * most, size - most), 0)
    return range(first, min(first + most, size))


@dataclass(frozen=True)
class Heights:
    """Rows of the pictures.

    Attributes:
        tokens: Lines of the first band, a token each.
        rows: Rows of every other picture, two a line.
    """

    tokens: int
    rows: int


USUAL = Heights(3, 4)
"""What every picture has at least where there is room for some bands only."""

SQUEEZED = Heights(1, 2)
"""What every picture has at least where that brings all bands into view."""


def heights(
    tokens: int, lines: int, bands: int, taken: int = 0, *, first: bool = True, least: Heights = USUAL
) -> Heights:
    """Rows for so many bands in so many lines, after the first band; every one has a border and a line of titles.

    The pictures of all bands become lower together, the first, which has a line a token, before the others.

    Args:
        tokens: How many tokens there are.
        lines: The lines for all of it.
        bands: How many bands there are after the first.
        taken: Lines that are taken by something else.
        first: Whether the first band is there.
        least: What is not gone below.
    """
    lines, rows, words = lines - taken, min(tokens, 24), min(tokens, 12)
    for low in dict.fromkeys((USUAL, least)):
        while words > low.tokens and _lines(words, rows, bands, first=first) > lines:
            if first and (words > (rows + 1) // 2 + 1 or rows <= 6):
                words -= 1
            elif rows > low.rows:
                rows = max(rows - 2, low.rows)
            else:
                break
        while rows > low.rows and _lines(words, rows, bands, first=first) > lines:
            rows = max(rows - 2, low.rows)
    while first and words < min(tokens, 12) and _lines(words + 1, rows, bands, first=first) <= lines:
        words += 1  # what is left is too little for another row of every band
    return Heights(words, rows)


def _lines(words: int, rows: int, bands: int, *, first: bool) -> int:
    return first * (words + 3) + bands * ((rows + 1) // 2 + 3)
