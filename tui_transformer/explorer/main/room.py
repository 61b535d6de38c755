"""Which panes give way to a matrix, so that a larger terminal never shows fewer of its numbers than a smaller one."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from textual.geometry import Size

SIDE, SLIM_SIDE = 44, 36
STEPS, SLIM_STEPS = 32, 26
"""Columns of the cell and of the list of steps; the slim ones where the matrix needs more."""

NARROW_MOST = 95
"""Columns of the widest terminal that shows one pane at a time, however high it is: what fits there fits in all."""

SENTENCE, HEADS, CHART = 4, 9, 12
"""Lines above and below a matrix."""

BELOW_WHOLE, MOST_BELOW, LEAST_WHOLE = 13, 26, 8
"""Lines for the step in full, at least and for a long sentence; lines that are left to the whole."""

AROUND_MATRIX = 4
"""Lines of its border, labels and legend."""


@dataclass(frozen=True)
class Need:
    """Columns and lines in which a matrix shows every number, with its border; nothing where that is not known."""

    columns: int = 0
    lines: int = 0


def lines_below(tokens: int, lines: int, room: int) -> int:
    """Lines for the step in full under the whole: every token has one, as far as that leaves a band of the whole."""
    least = min(room * 11 // 20, BELOW_WHOLE)
    wanted = min(tokens + AROUND_MATRIX, MOST_BELOW, lines - LEAST_WHOLE - 2)
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
        return alone | ({"-slim"} if need.columns > size.width * 3 // 5 else set())
    if need.columns > size.width - SLIM_SIDE and not alone:
        return frozenset()  # it shows no numbers in any case
    slim = {"-slim"} if need.columns > size.width - SIDE - STEPS else set[str]()
    broad = {"-broad"} if need.columns > size.width - SLIM_SIDE - SLIM_STEPS else set[str]()
    lines = size.height - 2 - SENTENCE - CHART - HEADS * heads
    tall = {"-tall"} if need.lines > lines else set[str]()
    return alone | slim | broad | tall | ({"-taller"} if need.lines > lines + CHART else set())
