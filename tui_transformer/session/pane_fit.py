"""Which panes there are and how much room each has: a function of the size, the state, and what the matrix needs.

A larger terminal never shows fewer numbers of a matrix than a smaller one.
"""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache
from textwrap import wrap
from typing import NamedTuple

from tui_transformer.records import dataclass
from tui_transformer.session.position import Position
from tui_transformer.session.session import TEXT, VOCABULARY, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.view_state import CYCLES, Shown, Size, ViewState
from tui_transformer.session.whole.layout import ENDLESS, place_bands
from tui_transformer.session.whole.scene import standing
from tui_transformer.session.words import WORDS
from tui_transformer.views.numbers import least_number_width, widest_label
from tui_transformer.views.view import Scale, View

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

FRAME, HEADER_AND_LEGEND = 2, 2
"""Lines or columns of a border; lines above and below the cells of a matrix."""

CELL_TITLE, ABOUT = "Cell", "What it is"
"""Titles of the border: where there is a cell, and where there is none."""

OVERLAY = "overlay"
"""The pane of the second matrix."""

PANES = {
    "whole": "The whole",
    "sentence": "Sentence",
    "steps": "Steps",
    "heads": "Heads",
    "matrix": "Matrix",
    "cell": CELL_TITLE,
    "chart": "Chart",
}
"""The panes that can have the keys, in the order of their digits, and what is written in their borders."""

UNNAMED = ("matrix", "whole")
"""Panes that are called after what they show, or whose parts have borders of their own."""


class Layout(NamedTuple):
    """A class of the screen, what the style sheet shows from so many columns and lines on.

    `others` are the lines beside the whole and the step in full.
    """

    name: str
    columns: int
    lines: int
    others: int


LAYOUTS = (Layout("-wide", 120, 36, 2), Layout("-medium", 96, 26, 6), Layout("-narrow", 0, 0, 4))
"""All panes, some, one at a time; the first that there is room for."""

SHORT = 18
"""Below so many lines only the cell's own line is left under the matrix, or under the whole."""

TIGHT = 150
"""Columns below which the list of steps gives way to a second matrix."""

STAYS: dict[str, tuple[str, ...]] = {
    "steps": ("-broad",),
    "cell": ("-alone",),
    "chart": ("-tall",),
    "heads": ("-taller",),
}
"""By the pane that has the keys, what does not hide it."""

LINES = ("title", "crumbs", "about", "summary", "tabs", "keys")
"""Texts of the screen."""

HIDDEN: dict[str, tuple[str, ...]] = {
    "-wide": ("crumbs", "summary", "tabs"),
    "-medium": ("heads", "chart", "about"),
    "-narrow": ("steps", "heads", "chart", "about"),
    "-whole": ("sentence", "steps", "heads", "chart", "about"),
    "-broad": ("steps",),
    "-tall": ("chart",),
    "-taller": ("heads",),
    "-vocabulary": ("chart",),
    "-text": ("chart",),
}
"""What the style sheet does not show in each class of the screen, unless it has the keys."""

SHOWN_AGAIN = {"-both": "crumbs", "-broad": "crumbs", "-alone": "summary"}
"""Lines of a wide screen that say what a pane that gave way would say."""

CLASSES = (
    *(each.name for each in LAYOUTS),
    *(f"-active-{pane}" for pane in PANES),
    *("-short", "-tight", "-whole", "-zoomed", "-tour", "-vocabulary", "-text", "-both", "-stacked", "-edited"),
    *("-slim", "-broad", "-alone", "-tall", "-taller"),  # panes give way to the matrix
)
"""Every class that an arrangement may have."""

Told = tuple[tuple[str, ...], ...]
"""Of every stop of a tour its paragraphs."""

INSIDE: dict[str, str] = {pane: pane for pane in PANES} | dict.fromkeys((VOCABULARY, TEXT, OVERLAY), "matrix")
"""The panes by what they are called, and what is shown in the place of the matrix."""


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


EDITED: tuple[tuple[int, int], ...] = ((40, 10), (26, 9), (22, 8), (17, 7), (12, 4))
"""Lines of a screen, and those that a sentence has from there on while it is edited; on a lower one it has the rest."""

LEAST_EDITED, NARROW_EDITED = 3, 50
"""Lines of it at least, and columns below which there is room for what is typed and for the answer alone."""


def lines_edited(size: Size, told: Told = ()) -> int:
    """Lines of a sentence while it is edited: what is typed, both sentences, the answer and the heads."""
    room = size.height - (card_lines(size, told) if told else 0)
    lines = next((lines for least, lines in EDITED if room >= least), LEAST_EDITED)
    return lines if size.width >= NARROW_EDITED else min(lines, EDITED[-1][1])


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


def given_way(layout: str, size: Size, need: Size, *, whole: bool, heads: bool) -> Set[str]:
    """Classes of the screen that say what gives way.

    Args:
        layout: The class of the layout.
        size: Columns and lines of the screen.
        need: Columns and lines in which the matrix shows every number; none where that is not known.
        whole: Whether the whole is above it.
        heads: Whether there is a strip of heads.
    """
    if layout == "-narrow" or not need.width:
        return frozenset()
    if layout == "-medium":
        hidden = not whole and size.width * 7 // 10 < need.width <= NARROW_MOST
        return {"-broad"} if hidden else frozenset()
    alone = {"-alone"} if size.width - SLIM_SIDE < need.width <= NARROW_MOST else set[str]()
    if whole:
        return alone | ({"-slim"} if size.width * 3 // 5 < need.width <= size.width - SLIM_SIDE else set())
    if need.width > size.width - SLIM_SIDE and not alone:
        return frozenset()  # it shows no numbers in any case
    slim = {"-slim"} if need.width > size.width - SIDE - STEPS else set[str]()
    broad = {"-broad"} if need.width > size.width - SLIM_SIDE - SLIM_STEPS else set[str]()
    lines = size.height - 2 - SENTENCE - CHART - HEADS * heads
    tall = {"-tall"} if need.height > lines else set[str]()
    return alone | slim | broad | tall | ({"-taller"} if need.height > lines + CHART else set())


def columns_needed(view: View, scale: Scale) -> int:
    """Columns in which a matrix shows every number, with its border."""
    return _columns(view, least_number_width(scale, integer=view.integer))


def _columns(view: View, number_width: int) -> int:
    return view.shape[1] * number_width + widest_label(view.rows) + 1 + FRAME


def number_width(scene: StepScene) -> int:
    """A width in which the numbers of both are told apart."""
    own, beside = least_number_width(scene.scale, integer=scene.view.integer), scene.overlay
    return own if beside is None else max(own, least_number_width(beside.scale, integer=beside.view.integer))


@dataclass(frozen=True)
class Arrangement:
    """Which panes there are and how much room each has: a function of the size, the state and the step.

    Attributes:
        classes: The classes of the screen, which the style sheet reads.
        names: The panes that the stop has.
        active: The one of them that has the keys: the matrix where what was chosen is not there.
        whole: Columns and lines of the whole; None where it is not shown.
        side: Columns of the cell, where it has what the matrix leaves.
        drawn: What has room on the screen, the lists of steps and heads too: lines, panes, and for the matrix `pair`,
            or the words in its place.
        edited: Lines of the sentence while it is edited; 0 where it is not.
    """

    classes: frozenset[str]
    names: tuple[str, ...]
    active: str
    whole: Size | None
    side: int | None
    drawn: frozenset[str]
    edited: int = 0


def layout_of(size: Size) -> Layout:
    """The layout that there is room for."""
    return next(each for each in LAYOUTS if size.width >= each.columns and size.height >= each.lines)


def shown_at(session: Session, view: ViewState, size: Size, further: int = 0) -> Shown:
    """Which matrices are drawn, as the room allows; or what comes so many choices further."""
    cycle = CYCLES[session.overlay.kind, layout_of(size) is LAYOUTS[0]]
    at = cycle.index(view.wanted) if view.wanted in cycle else 0
    return cycle[(at + further) % len(cycle)]


def arrange(
    size: Size, session: Session, position: Position, view: ViewState, told: Told, step: StepScene | None
) -> Arrangement:
    """How everything is laid out.

    Args:
        size: Columns and lines of the screen.
        session: What is explored.
        position: The stop.
        view: What has the keys, and what is wanted.
        told: Of every stop of the tour that goes on its paragraphs; none without a tour.
        step: What the matrix shows; None for words, and until it is there.
    """
    layout, stop, tight = layout_of(size), position.stop, size.width < TIGHT
    wide = layout is LAYOUTS[0]
    whole = (wide if view.whole is None else view.whole) and not (told and size.height < SHORT)
    axes = () if stop in (VOCABULARY, *WORDS) else session.trace.program.axes(stop)
    absent = {"whole"} if len(axes) == 3 and axes[0].size > 1 else {"whole", "heads"}
    names = ("whole", "matrix", "cell") if whole else tuple(name for name in PANES if name not in absent)
    both = step is not None and step.shown == "both" and step.overlay is not None
    need, stacked = Size(0, 0), False
    if step is not None and not both:
        need = Size(_columns(step.drawn, number_width(step)), step.drawn.shape[0] + HEADER_AND_LEGEND + FRAME)
    lines = _whole_lines(layout, size, session, position, view, told, need) if whole else 0
    if step is not None and both:
        # one above the other is easier to read where numbers fit so, and side by side they do not
        around = (size.width * 2 // 5, lines + 2) if whole else ((0 if tight else 26) + 38, 1 + 4 + 12 + 1 + tight)
        columns, lines_of_one = _columns(step.view, number_width(step)), step.view.shape[0] + FRAME + HEADER_AND_LEGEND
        stacked = columns > (size.width - around[0]) // 2 and lines_of_one <= (size.height - around[1]) // 2
    if stacked:
        names = tuple(name for name in names if name != "heads")
    active = view.active if view.active in names else "matrix"
    given = given_way(layout.name, size, need, whole=whole, heads="heads" in names)
    wanted = {
        layout.name: True,
        f"-active-{active}": True,
        "-short": size.height < SHORT,
        "-tight": tight,
        "-whole": whole,
        "-zoomed": view.zoom is not None,
        "-tour": bool(told),
        "-vocabulary": stop == VOCABULARY,
        "-text": stop in WORDS,
        "-both": both,
        "-stacked": stacked,
        "-edited": view.edited > 0,
        **dict.fromkeys(given - {*STAYS.get(active, ())}, True),
    }
    classes = frozenset(name for name, holds in wanted.items() if holds)
    hidden = {each for name in classes for each in HIDDEN.get(name, ())} - {active}
    hidden -= {SHOWN_AGAIN.get(name) for name in classes}
    drawn = {*LINES} - hidden | ({active} if view.zoom is not None else {*names} - hidden)
    drawn |= {"sentence"} if view.edited else set()
    if "matrix" in drawn:
        drawn |= {VOCABULARY if stop == VOCABULARY else TEXT if stop in WORDS else "pair"}
    return Arrangement(
        classes,
        names,
        active,
        Size(size.width, lines) if lines and size.width else None,
        size.width - need.width if whole and wide and "-slim" in given else None,
        frozenset(drawn),
        view.edited,
    )


def _whole_lines(
    layout: Layout, size: Size, session: Session, position: Position, view: ViewState, told: Told, need: Size
) -> int:
    """Lines of the whole: what the step in full does not need, and no more than it can use."""
    short, zoomed, first = size.height < SHORT, view.zoom == "whole", view.active != "whole"
    room = size.height - (card_lines(size, told) if told else 0) - view.edited
    if zoomed:
        room -= 1 + (layout.name != "-narrow")  # keys, and the title
    else:
        room -= 3 if short else layout.others
    below = 0
    if not short and not zoomed:
        rows = 0
        if position.stop != VOCABULARY:  # its list scrolls
            rows = max((len(each.tokens) for each in session.sequences.values()), default=0)
            rows = max(rows, need.height - AROUND_MATRIX) if first else rows
        below = lines_below(rows, size.height, room, first=first)
    placed = place_bands(session, standing(session, position), size.width, ENDLESS)
    return max(min(room - below, max(band.top + band.lines for band in placed)), 0)
