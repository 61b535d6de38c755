"""Where bands and boxes lie: how wide every picture is, how many rows it has, and what is left for the step in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

GAP = 3
"""Columns between two boxes: a sign with a space on either side."""

NARROWEST = 4
"""Columns of a picture at least."""


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


def fit(wishes: Sequence[Wish], room: int, current: int | None = None) -> tuple[Placed, ...]:
    """Boxes side by side in so many columns: every box at its least, and what is left shared evenly up to the most.

    Where not all have room at their least they are drawn bare, and where not even that, the ones around the current
    box are.
    """
    for scarce in ("bare", "barest"):
        if _needed(wishes) > room:
            wishes = [replace(wish, least=getattr(wish, scarce) or wish.least) for wish in wishes]
    shown = _around(wishes, room, current or 0)
    widths = shared([wishes[box] for box in shown], room - GAP * (len(shown) - 1))
    lefts = accumulate((width + GAP for width in widths), initial=0)
    return tuple(Placed(box, left, width) for box, left, width in zip(shown, lefts, widths, strict=False))


def _needed(wishes: Sequence[Wish]) -> int:
    return sum(wish.least + GAP for wish in wishes) - GAP


def _around(wishes: Sequence[Wish], room: int, current: int) -> range:
    """The longest run of boxes that has room, the current one in the middle of it as far as that is possible."""
    runs = (window(len(wishes), current, size) for size in range(len(wishes), 0, -1))
    return next((run for run in runs if _needed([wishes[box] for box in run]) <= room), range(current, current + 1))


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


def window(size: int, around: int, most: int) -> range:
    """At most so many of `size` rows, one of them in the middle as far as that is possible."""
    first = min(max(around - most // 2, 0), max(size - most, 0))
    return range(first, min(first + most, size))


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
