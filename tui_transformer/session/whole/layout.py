"""Where bands and boxes lie: how wide every picture is, how many rows it has, and what is left for the step in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from tui_transformer.engine.axis import Axes, Axis
from tui_transformer.engine.program import Program, by_program
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.whole.layer_norms import ladder_columns
from tui_transformer.session.whole.names import band_title, shape, symbol
from tui_transformer.text.display import cells
from tui_transformer.views.view import around
from tui_transformer.views.whole import ANSWER, Band, bands, heads_of

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
    stop, words = position.stop, session.model.vocabulary is not None
    return session.cache.edited.get(  # at every cell the same
        f"bands of {stop}, {width} × {height}",
        lambda: _placed(session.trace.program, stop, width, height, words=words),
    )


def lines_wanted(session: Session, position: Position, width: int) -> int:
    """Lines in which every band shows as much as it can."""
    placed = place_bands(session, position, width, ENDLESS)
    return max(placement.top + placement.lines for placement in placed)


def _placed(program: Program, stop: str, width: int, height: int, *, words: bool) -> tuple[Placement, ...]:
    """One column, or of two stacks one each; where there is no room for both the one that the stop is in."""
    width -= ladder_columns(program, width)
    among = [_measured(program, band) for band in bands(program, stop)]
    both = {"encoder", "decoder"} <= {each.band.stack for each in among}
    column = partial(_column, stop=stop, height=height, both=both, words=words)
    if not both:
        return column(among, 0, width)
    source = [each for each in among if each.band.stack == "encoder" or each.band.name == "embedding"]
    target = [each for each in among if each not in source]
    here = source if any(stop in each.band.steps for each in source) else target
    if width < TWO_STACKS:
        return column(here, 0, width)
    left = (width - 1) * (3 if here is source else 2) // 5
    return (*column(source, 0, left), *column(target, left + 1, width - left - 1))


@dataclass(frozen=True)
class Measured:
    """A band, and what its size depends on.

    Attributes:
        band: The band.
        wishes: How wide its boxes would like to be.
        tokens: Rows of its pictures that stand for tokens; 1 where none do.
        answers: Whether the most likely words are among its boxes, which have any number of lines.
        numbered: Whether there are several heads beside each other, with their numbers below.
    """

    band: Band
    wishes: tuple[Wish, ...]
    tokens: int
    answers: bool
    numbered: bool

    @property
    def wish(self) -> Wish:
        """How wide it would like to be, with its border and the signs between its boxes."""
        between = GAP * (len(self.wishes) - 1) + 4
        least = max(sum(box.least for box in self.wishes) + between, NARROW_BAND)
        return Wish(least, max(sum(box.most for box in self.wishes) + between, least))


@by_program
def _measured(program: Program, band: Band) -> Measured:
    names = [box.steps[-1] for box in band.boxes]
    pictures = {name: program.axes(name) for name in names if name not in ANSWER}
    tokens = [rows_of(axes) for axes in pictures.values() if row_axis(axes).sequence]
    return Measured(
        band,
        tuple(_wish(program, box.shown("")) for box in band.boxes),
        tokens=max(tokens, default=1),
        answers=len(pictures) < len(names),
        numbered=any(heads_of(program.axes(name)) > 1 and all_heads(program, name) for name in names),
    )


def _wish(program: Program, name: str) -> Wish:
    """How wide the box of a step would like to be."""
    axes = program.axes(name)
    if len(axes) == 1 and axes[0].sequence:
        return Wish(TOKENS_WIDTH - 4, TOKENS_WIDTH)
    if name in ANSWER:
        return Wish(24, ANSWER_WIDTH, 14)
    title, columns = symbol(program, name), axes[-1].size
    heads = heads_of(axes) if all_heads(program, name) else 1
    named = min(cells(title), LONGEST_SCORES if program.step(name).square else cells(title))
    least = max(NARROWEST, min(columns, 6), named) if heads == 1 else max(min(heads, 8) * 7, len(ALL_HEADS))
    most = columns if heads == 1 else heads * (min(columns, MOST_HEAD) + 2)
    bare, barest = (min(heads, each) * (NARROWEST + 1) - 1 for each in (8, 2))  # where it is as narrow as can be
    return Wish(least, max(least, most, cells(f"{title} {shape(axes)}")), bare, barest)


class Row(tuple[Measured, ...]):
    """Bands side by side."""

    @property
    def tall(self) -> bool:
        """Whether its bands have a line a token: those of words and vectors."""
        return self[0].band.name.endswith("embedding")

    def count(self, sizes: Heights) -> int:
        """Rows of its pictures: no more than there are, as where the target is shorter than the source."""
        most = sizes.tokens if self.tall else sizes.rows
        return most if any(each.answers for each in self) else min(most, max(each.tokens for each in self))

    def lines(self, sizes: Heights) -> int:
        """Lines that it takes, with its border, its titles, and the numbers of heads."""
        rows = self.count(sizes)
        return (rows if self.tall else (rows + 1) // 2) + 3 + any(each.numbered for each in self)


def _column(
    among: Sequence[Measured], left: int, width: int, *, stop: str, height: int, both: bool, words: bool
) -> tuple[Placement, ...]:
    """Bands below each other, the feed-forward layer and those after it side by side where there is room."""
    rows: list[Row] = []
    for each in among:
        narrow = each.band.name in ("output", "encoder.norm") and width >= SIDE_BY_SIDE // (1 + both)
        if narrow and rows and not rows[-1].tall:
            rows[-1] = Row((*rows[-1], each))
        else:
            rows.append(Row((each,)))
    shown, sizes = _on_screen(rows, stop, height)
    placed, top = list[Placement](), 0
    for row in shown:
        lines, room = row.lines(sizes), width - (len(row) - 1)
        if top + lines > height and placed:
            break
        widths = shared([each.wish for each in row], room)
        widths[-1] = room - sum(widths[:-1])
        at = left
        for each, columns in zip(row, widths, strict=True):
            beside = VOCABULARY_WIDTH * (row.tall and words and columns >= WITH_VOCABULARY)
            here = next((i for i, box in enumerate(each.band.boxes) if stop in box.steps), 0)
            boxes, title = fit(each.wishes, columns - 4 - beside, here), band_title(each.band.name, both=both)
            placed.append(Placement(each.band, title, top, at, columns, lines, boxes, row.count(sizes), row.tall))
            at += columns + 1
        top += lines
    return tuple(placed)


def _on_screen(rows: list[Row], stop: str, height: int) -> tuple[list[Row], Heights]:
    """All rows of bands where every picture has room for some rows, else those around the current one."""
    here = next((i for i, row in enumerate(rows) if any(stop in each.band.steps for each in row)), 0)
    tokens = max(each.tokens for row in rows for each in row)

    def fits(shown: list[Row], sizes: Heights) -> bool:
        return sum(row.lines(sizes) for row in shown) <= height

    fewer = ((count, USUAL) for count in range(len(rows) - 1, 0, -1))
    for count, least in ((len(rows), USUAL), (len(rows), SQUEEZED), *fewer):
        place = around(here, len(rows), count)
        shown = rows[place.start : place.stop]
        first, numbers = any(row.tall for row in shown), sum(any(each.numbered for each in row) for row in shown)
        sizes = heights(tokens, height, len(shown) - first, numbers, first=first, least=least)
        while least is SQUEEZED and sizes.rows < tokens and fits(shown, higher := replace(sizes, rows=sizes.rows + 2)):
            sizes = higher  # bands of fewer tokens leave lines to others
        fewest = FEWEST_ROWS if least is USUAL else least.tokens
        enough = (row.count(sizes) >= min(fewest, *(each.tokens for each in row)) for row in shown)
        if fits(shown, sizes) and all(enough):
            break
    return shown, sizes


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
