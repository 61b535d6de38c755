"""Where bands and boxes lie: how wide every picture is, how many rows it has, and what is left for the step in full."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from tui_transformer.engine.program import Program, by_program
from tui_transformer.records import dataclass, replace
from tui_transformer.session.position import Position
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.whole.layer_norms import ladder_columns
from tui_transformer.session.whole.names import band_title, outline
from tui_transformer.text.display import cells
from tui_transformer.views.view import around
from tui_transformer.views.whole import ANSWER, Band, Box, bands

TOKENS_WIDTH, ANSWER_WIDTH, VOCABULARY_WIDTH = 15, 36, 19

LEAST_WORDS = 16
"""Columns that entries of the vocabulary need."""

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


@dataclass(frozen=True)
class Placed:
    """A box in its band, its first column and its width; no box for the vocabulary beside the others."""

    box: Box | None
    left: int
    width: int


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


def place_bands(session: Session, position: Position, width: int, height: int) -> tuple[Placement, ...]:
    """The bands around a position in so many columns and lines, as many as there is room for beside the ladder."""
    program, stop, has_words = session.trace.program, position.stop, session.forward_stops[0] == VOCABULARY
    among = bands(program, stop)
    placed, everywhere = _placed(program, among, "", width, height, words=has_words)
    if not everywhere:
        placed, _ = _placed(program, among, stop, width, height, words=has_words)
    return placed


@by_program
def _placed(
    program: Program, shown: tuple[Band, ...], stop: str, width: int, height: int, *, words: bool
) -> tuple[tuple[Placement, ...], bool]:
    """One column, or of two stacks one each; where there is no room for both the one that the stop is in.

    And whether it is the same at every step: of one stack, where every box has room.
    """
    width -= ladder_columns(program, width)
    among = [_measured(program, band) for band in shown]
    both = {"encoder", "decoder"} <= {each.band.stack for each in among}
    column = partial(_column, stop=stop, height=height, both=both, words=words)
    source = [each for each in among if each.band.stack == "encoder" or each.band.name == "embedding"]
    target = [each for each in among if each not in source]
    here = source if any(stop in each.band.steps for each in source) else target
    if both and width >= TWO_STACKS:
        left = (width - 1) * (3 if here is source else 2) // 5
        placed = (*column(source, 0, left), *column(target, left + 1, width - left - 1))
    else:
        placed = column(here if both else among, 0, width)
    boxes = [box for each in placed for box in each.boxes if box.box is not None]
    return placed, not both and len(boxes) == sum(len(band.boxes) for band in shown)


# How wide boxes and bands would like to be


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
class Measured:
    """A band, and what its size depends on.

    Attributes:
        band: The band.
        wishes: How wide its boxes would like to be.
        wish: How wide it would like to be itself, with its border and the signs between its boxes.
        tokens: Rows of its pictures that stand for tokens; 1 where none do.
        answers: Whether the most likely words are among its boxes, which have any number of lines.
        numbered: Whether there are several heads beside each other, with their numbers below.
    """

    band: Band
    wishes: tuple[Wish, ...]
    wish: Wish
    tokens: int
    answers: bool
    numbered: bool


def _measured(program: Program, band: Band) -> Measured:
    names = [box.steps[-1] for box in band.boxes]
    outlines = [outline(program, name) for name in names]
    wishes = tuple(_wish(program, box.last) for box in band.boxes)
    between = GAP * (len(wishes) - 1) + 4
    least = max(sum(box.least for box in wishes) + between, NARROW_BAND)
    pictures = [each for each, name in zip(outlines, names, strict=True) if name not in ANSWER]
    return Measured(
        band,
        wishes,
        Wish(least, max(sum(box.most for box in wishes) + between, least)),
        tokens=max((each.rows for each in pictures if each.sequence), default=1),
        answers=len(pictures) < len(names),
        numbered=any(each.heads > 1 and each.every_head for each in outlines),
    )


def _wish(program: Program, name: str) -> Wish:
    step = outline(program, name)
    if step.is_vector and step.sequence:
        return Wish(TOKENS_WIDTH - 4, TOKENS_WIDTH)
    if name in ANSWER:
        return Wish(24, ANSWER_WIDTH, 14)
    columns, heads = step.columns, step.heads if step.every_head else 1
    named = min(cells(step.title), LONGEST_SCORES if program.step(name).square else cells(step.title))
    least = max(NARROWEST, min(columns, 6), named) if heads == 1 else max(min(heads, 8) * 7, len("softmax, all heads"))
    most = columns if heads == 1 else heads * (min(columns, MOST_HEAD) + 2)
    bare, barest = (min(heads, each) * (NARROWEST + 1) - 1 for each in (8, 2))  # where it is as narrow as can be
    return Wish(least, max(least, most, cells(f"{step.title} {step.shape}")), bare, barest)


def fit(wishes: Sequence[Wish], room: int, current: int) -> dict[int, tuple[int, int]]:
    """First column and width of boxes side by side: each at its least, what is left shared evenly up to the most.

    Where not all have room at their least they are drawn bare, and where not even that, the ones around the current
    box are.
    """

    def needed(among: Sequence[Wish]) -> int:
        return sum(wish.least + GAP for wish in among) - GAP

    for scarce in ("bare", "barest"):
        if needed(wishes) > room:
            wishes = [replace(wish, least=getattr(wish, scarce) or wish.least) for wish in wishes]
    runs = (around(current, len(wishes), size) for size in range(len(wishes), 0, -1))
    shown = next((run for run in runs if needed(wishes[run.start : run.stop]) <= room), range(current, current + 1))
    widths = shared([wishes[box] for box in shown], room - GAP * (len(shown) - 1))
    lefts = accumulate((width + GAP for width in widths), initial=0)
    return dict(zip(shown, zip(lefts, widths, strict=False), strict=True))


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


# Which bands have room, and how many rows


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
            places = fit(each.wishes, columns - 4 - beside, here)
            boxes = [Placed(each.band.boxes[box], *place) for box, place in places.items()]
            rest = boxes[-1].left + boxes[-1].width + GAP
            if row.tall and columns - 4 - rest >= LEAST_WORDS:
                boxes.append(Placed(None, rest, columns - 4 - rest))
            title, count = band_title(each.band.name, both=both), row.count(sizes)
            placed.append(Placement(each.band, title, top, at, columns, lines, tuple(boxes), count, row.tall))
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
        sizes = heights(tokens, height - numbers, len(shown) - first, first=first, least=least)
        while least is SQUEEZED and sizes.rows < tokens and fits(shown, higher := replace(sizes, rows=sizes.rows + 2)):
            sizes = higher  # bands of fewer tokens leave lines to others
        fewest = FEWEST_ROWS if least is USUAL else least.tokens
        enough = (row.count(sizes) >= min(fewest, *(each.tokens for each in row)) for row in shown)
        if fits(shown, sizes) and all(enough):
            break
    return shown, sizes


@dataclass(frozen=True)
class Heights:
    """Rows of the pictures: of those of the first band, with a line a token, and of every other, two a line."""

    tokens: int
    rows: int


USUAL = Heights(3, 4)
"""What every picture has at least where there is room for some bands only."""

SQUEEZED = Heights(1, 2)
"""What every picture has at least where that brings all bands into view."""


def heights(tokens: int, lines: int, bands: int, *, first: bool, least: Heights) -> Heights:
    """Rows for so many bands in so many lines, after the first band; every one has a border and a line of titles.

    The pictures of all bands become lower together, the first, which has a line a token, before the others.
    """
    rows, words = min(tokens, 24), min(tokens, 12)

    def taken(words: int) -> int:
        return first * (words + 3) + bands * ((rows + 1) // 2 + 3)

    for low in dict.fromkeys((USUAL, least)):
        while taken(words) > lines:
            if first and words > low.tokens and (words > (rows + 1) // 2 + 1 or rows <= 6):
                words -= 1
            elif rows > low.rows:
                rows = max(rows - 2, low.rows)
            else:
                break
    while first and words < min(tokens, 12) and taken(words + 1) <= lines:
        words += 1  # what is left is too little for another row of every band
    return Heights(words, rows)
