"""Which panes give way to a matrix, so that a larger terminal never shows fewer of its numbers than a smaller one."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from textwrap import wrap

from textual.geometry import Size

SIDE, SLIM_SIDE = 44, 36
STEPS, SLIM_STEPS = 32, 26
"""Columns of the cell and of the list of steps; the slim ones where the matrix needs more."""

NARROW_MOST = 95
"""Columns of the widest terminal that shows one pane at a time, however high it is: what fits there fits in all."""

SENTENCE, HEADS, CHART = 4, 9, 12
"""Lines above and below a matrix."""

BELOW_WHOLE, MOST_BELOW, LEAST_WHOLE = 13, 25, 8
"""Lines for the step in full, at least and for a long sentence beside the whole; lines that are left to the whole."""

LOW = 30
"""Lines of a screen below which only the first stop of a tour says its question."""

AROUND_CARD, LEAST_CARD, SHORT_CARD = 5, 5, 24
"""Columns of the card of a tour that its words do not have, its fewest lines, and the screen that has more for it."""

AROUND_MATRIX = 4
"""Lines of its border, labels and legend."""


@dataclass(frozen=True)
class Need:
    """Columns and lines in which a matrix shows every number, with its border; nothing where that is not known."""

    columns: int = 0
    lines: int = 0


def has_question(size: Size, number: int) -> bool:
    """Whether the card of a stop says the question of the tour: of a low screen the first alone does."""
    return number == 1 or size.height >= LOW


@lru_cache(maxsize=8)
def card_lines(size: Size, texts: tuple[tuple[str, ...], ...]) -> int:
    """Lines of the card of a tour: as many as its longest stop takes, so that it is the same at every stop.

    Args:
        size: Columns and lines of the screen.
        texts: Of every stop the question of the tour, and the paragraphs that it may have.
    """
    columns = max(size.width - AROUND_CARD, 1)
    said = [stop[has_question(size, number) ^ 1 :] for number, stop in enumerate(texts, 1)]
    longest = max((sum(len(wrap(each, columns)) for each in stop) for stop in said), default=LEAST_CARD)
    most = size.height * 2 // 5 if size.height >= SHORT_CARD else size.height // 2
    return min(longest + 2, max(most, LEAST_CARD))


def lines_below(rows: int, lines: int, room: int, *, first: bool = False) -> int:
    """Lines for the step in full under the whole: every row has one, as far as that leaves a band of the whole.

    Args:
        rows: Rows of the matrix, or tokens of the sentence.
        lines: Lines of the screen.
        room: Lines for both.
        first: Whether the matrix has the keys: then a long one leaves no more than a band.
    """
    least = min(room * 11 // 20, BELOW_WHOLE)
    wanted = min(rows + AROUND_MATRIX, lines if first else MOST_BELOW, lines - LEAST_WHOLE - 2)
    return max(least, min(wanted, room - LEAST_WHOLE), room * 3 // 10)


def given_way(layout: str, size: Size, need: Need, *, whole: bool, heads: bool) -> Set[str]:
    """Classes of the screen that say what gives way.

    Args:
        layout: The class of the layout.
        size: Columns and lines of the screen.
        need: What the matrix needs.
        whole: Whether the whole is above it.
        heads: Whether there is a strip of heads.
    """
    if layout == "-narrow" or not need.columns:
        return frozenset()
    if layout == "-medium":
        hidden = not whole and size.width * 7 // 10 < need.columns <= NARROW_MOST
        return {"-broad"} if hidden else frozenset()
    alone = {"-alone"} if size.width - SLIM_SIDE < need.columns <= NARROW_MOST else set[str]()
    if whole:
        return alone | ({"-slim"} if size.width * 3 // 5 < need.columns <= size.width - SLIM_SIDE else set())
    if need.columns > size.width - SLIM_SIDE and not alone:
        return frozenset()  # it shows no numbers in any case
    slim = {"-slim"} if need.columns > size.width - SIDE - STEPS else set[str]()
    broad = {"-broad"} if need.columns > size.width - SLIM_SIDE - SLIM_STEPS else set[str]()
    lines = size.height - 2 - SENTENCE - CHART - HEADS * heads
    tall = {"-tall"} if need.lines > lines else set[str]()
    return alone | slim | broad | tall | ({"-taller"} if need.lines > lines + CHART else set())
