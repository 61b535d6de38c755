"""The poster of a number as text and as SVG: the cells that it is made of, back to the words."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator

from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.records import dataclass
from tui_transformer.report.svg import BACKGROUND, GLYPH, document, end_of
from tui_transformer.text.display import ELLIPSIS, cells, fit, fit_label, visible
from tui_transformer.views.poster import Cell, Term

LINE = 15.0
"""Height of a line in pixels."""

WIDE, BETWEEN, APART, MARGIN, HEAD = 300.0, 76.0, 8.0, 28.0, 56.0
"""Width of a box, the room between two columns and two boxes, and around and above all, in pixels."""

INK, QUIET, PAPER, EDGE = "#1b1f24", "#66707a", "#ffffff", "#c9d1d9"
ADDS, TAKES, LEAF = "#b35806", "#3c6eb4", "#f5f7f9"
"""Colours; what is negative has a dashed line besides."""

WIDEST = 6.0
"""Width of a line that is the whole of a cell."""

BETWEEN_PARTS = " · "
"""Between the parts of a place."""

ENDINGS = (".svg", ".png", ".txt")
"""Of the files that a poster is written to."""


def heading(root: Cell) -> str:
    """What the poster is of: `Attention weights · head 2 · query where · key ? = 0.98859`."""
    return visible(f"{_called(root)} = {spoken(root.value)}")


def checked(root: Cell) -> str:
    """How far the cells that are taken apart are from what the forward pass holds."""
    apart = [abs(cell.difference) for cell in root.walk() if cell.formula]
    if not apart:
        return f"{root.edited}, not computed"
    what = f"{len(apart)} cells worked out again in float64" if len(apart) > 1 else "worked out again in float64"
    numbers = [each for each in apart if not math.isnan(each)]
    beside = f", but {len(apart) - len(numbers)} that are no number" if len(numbers) < len(apart) else ""
    return f"{what}; at most {spoken(max(numbers, default=math.nan), 2)} from the forward pass{beside}"


def poster_text(root: Cell, width: int | None) -> Iterator[str]:
    """A line for each cell, indented below the one that it is a part of, and cut to a width."""
    for line, _ in poster_lines(root):
        yield f"{line if width is None else fit(line, width).rstrip()}\n"
    yield f"\n{checked(root)}\n"


def poster_lines(cell: Cell, lead: str = "", below: str = "") -> Iterator[tuple[str, Cell | None]]:
    """Each line of the text and the cell that it is of; the last below one tells of those that are not shown."""
    left = cell.equation.rpartition(" = ")[0]
    made = f" = {left}" if left and left != spoken(cell.value) else ""
    elsewhere = "  (taken apart elsewhere)" if cell.is_repeated and not cell.edited else ""
    made = f" ({cell.edited})" if cell.edited else made
    yield visible(f"{lead}{spoken(cell.value)}{made}   {_called(cell)}{elsewhere}"), cell
    children = [(term, each) for term in cell.terms for each in term.cells]
    for number, (term, each) in enumerate(children, 1):
        is_last = number == len(children) and not cell.rest
        corner, bar = ("└ ", "  ") if is_last else ("├ ", "│ ")
        adds = "· " if len(term.cells) > 1 else ""  # a term of one cell is its value
        if adds and each is term.cells[0]:
            adds = f"{spoken(term.contribution, 4)} ({in_percent(term.share, '.0%')}): "
        yield from poster_lines(each, f"{below}{corner}{adds}", below + bar)
    if cell.rest:
        yield f"{below}└ {_others(cell)}", None


def _called(cell: Cell) -> str:
    return f"{cell.name} · {cell.place}" if cell.place else cell.name


def _others(cell: Cell) -> str:
    return f"and {cell.rest:,} more, {spoken(cell.rest_total, 4)} together"


# As a picture


@dataclass
class _Box:
    """A cell on the page: its column from the right, and the middle of its height."""

    cell: Cell
    column: int
    texts: tuple[str, ...]
    children: list[tuple[Term, _Box]]
    middle: float = 0.0

    @property
    def height(self) -> float:
        return LINE * len(self.texts) + APART

    def walk(self) -> Iterator[_Box]:
        yield self
        for _, box in self.children:
            yield from box.walk()


def poster_svg(root: Cell, about: str) -> str:
    """One picture: the number at the right, and left of each cell those that it is made of.

    A line is as wide as the share of what it adds, orange where that is positive, blue and dashed where negative.

    Args:
        root: The number.
        about: The sentence and the model.
    """
    box = _boxes(root)
    bottom = _place(box, MARGIN + HEAD)
    columns = max(each.column for each in box.walk()) + 1
    width, height = 2 * MARGIN + columns * WIDE + (columns - 1) * BETWEEN, bottom + MARGIN + LINE
    above = end_of(MARGIN, heading(root), glyph=GLYPH * 18 / 11), end_of(MARGIN, about, checked(root))
    parts = [
        BACKGROUND,
        _text(MARGIN, MARGIN + 14, heading(root), 'font-size="18" font-weight="bold"'),
        _text(MARGIN, MARGIN + 34, about, f'fill="{QUIET}"'),
        *(line for each in box.walk() for line in _links(each, width)),
        *(line for each in box.walk() for line in _drawn(each, width)),
        _text(MARGIN, height - MARGIN / 2, checked(root), f'fill="{QUIET}"'),
    ]
    return document(max(width, *above), height, parts, INK)


def _boxes(cell: Cell, column: int = 0) -> _Box:
    room = int((WIDE - 2 * APART) / GLYPH)
    name, number = visible(cell.name), spoken(cell.value)
    left = room - len(number) - 1
    if len(name) > left:  # cut in its middle: layer and end tell it from others
        name = f"{name[: left // 3]}{ELLIPSIS}{name[left // 3 + 1 - left :]}"
    places = [""]  # in as many lines as it takes: none of the words is left out
    for part in cell.place.split(BETWEEN_PARTS):
        longer = f"{places[-1]}{BETWEEN_PARTS}{part}" if places[-1] else part
        places[-1:] = [longer] if cells(longer) <= room else [places[-1], part]
    made = (cell.formula, cell.equation) if cell.formula else ()
    texts = (
        f"{fit(name, left)} {number}",
        *(fit_label(line, room).rstrip() for line in places if line),
        *(fit(text, room).rstrip() for text in (cell.edited, *made, _others(cell) if cell.rest else "") if text),
    )
    children = [(term, _boxes(each, column + 1)) for term in cell.terms for each in term.cells]
    return _Box(cell, column, texts, children)


def _place(box: _Box, top: float) -> float:
    """Put a box beside the middle of those that it is made of, which stand below one another; where they end."""
    start = top
    for _, each in box.children:
        top = _place(each, top) + APART
    bottom = max(top - APART if box.children else top, start + box.height)
    middles = [each.middle for _, each in box.children]
    box.middle = (middles[0] + middles[-1]) / 2 if middles else start + box.height / 2
    box.middle = max(box.middle, start + box.height / 2)
    return max(bottom, box.middle + box.height / 2)


def _left(box: _Box, width: float) -> float:
    return width - MARGIN - WIDE - box.column * (WIDE + BETWEEN)


def _links(box: _Box, width: float) -> Iterator[str]:
    """The lines from the cells that a cell is made of, with what each adds."""
    for term, each in box.children:
        start, end = _left(each, width) + WIDE, _left(box, width)
        half = (start + end) / 2
        color, dashes = (ADDS, "") if term.contribution >= 0 else (TAKES, ' stroke-dasharray="5 3"')
        size = max(WIDEST * min(term.share, 1.0), 1.0)
        path = f"M{start:.1f} {each.middle:.1f} C{half:.1f} {each.middle:.1f} {half:.1f} {box.middle:.1f} "
        yield (
            f'<path d="{path}{end:.1f} {box.middle:.1f}" fill="none" stroke="{color}" stroke-opacity="0.75" '
            f'stroke-width="{size:.2f}"{dashes}/>'
        )
        if each.cell is term.cells[0] and (term.share or len(term.cells) > 1):
            text = f"{'+' if term.contribution >= 0 else ''}{spoken(term.contribution, 3)}"
            halo = f'stroke="{PAPER}" stroke-width="3" paint-order="stroke"'  # to be read over a line
            yield _text(start + 5, each.middle - 5, text, f'fill="{color}" {halo}')
        elif each.cell is not term.cells[0]:
            yield _text(start + 5, each.middle - 5, "·", f'fill="{color}" font-weight="bold"')


def _drawn(box: _Box, width: float) -> Iterator[str]:
    left, top = _left(box, width), box.middle - box.height / 2
    fill = PAPER if box.cell.formula else LEAF
    edge = ADDS if box.column == 0 else EDGE
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{WIDE:.0f}" height="{box.height:.1f}" rx="5" fill="{fill}" '
        f'stroke="{edge}" stroke-width="{2 if box.column == 0 else 1}"/>'
    )
    for number, text in enumerate(box.texts):
        look = 'font-weight="bold"' if number == 0 else f'fill="{QUIET}"'
        yield _text(left + APART, top + APART / 2 + LINE * (number + 0.75), text, look)
    if box.cell.is_repeated:
        yield _text(left - 12, box.middle + 4, "…", f'fill="{QUIET}"')


def _text(x: float, y: float, text: str, look: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" xml:space="preserve" {look}>{html.escape(visible(text))}</text>'
