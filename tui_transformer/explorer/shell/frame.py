"""The frame that the terminal shows: of an update, only the cells that changed are written.

Textual writes every line of a widget that is drawn again, with all colours of every segment. Over a slow line that is
felt. Here an update is compared with what was written before, cell by cell. What is left is written in the order of
reading, or, where colours change from cell to cell, all cells of a colour after each other. No colour is set that is
set already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rich.color import ColorSystem
from rich.console import Console
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from tui_transformer.explorer.shell.terminal_cells import LOWER, OWN, UPPER, Cell, Cells, CellStyle, as_background

Change = tuple[int, int, Cell]
"""A line, a column, and what stands there now."""

FEW = 64
"""Changes that are written in the order of reading in any case."""

SCATTERED = 0.4
"""Changes of colour from cell to cell from which it takes fewer bytes to go to every cell of a colour."""


class Frame:
    """The cells that were written to the terminal, line by line."""

    def __init__(self, system: ColorSystem) -> None:
        """Nothing was written yet to a terminal with so many colours."""
        self._lines: dict[int, list[Cell | None]] = {}
        self._cells = Cells(system)

    def forget(self) -> None:
        """Take nothing for written: the terminal has another size, or somebody else wrote to it."""
        self._lines.clear()

    def changes(self, update: LayoutUpdate | ChopsUpdate) -> Changes:
        """The update, to be written as far as it changes anything."""
        return Changes(self, update)

    def write(self, update: LayoutUpdate | ChopsUpdate) -> str:
        """The sequences that make the terminal show an update, after which it counts as written."""
        changes = list[Change]()
        for y, x, strips in _pieces(update):
            changes += self._changed(y, x, self._cells.of(strips))
        pen = Pen()
        if _are_scattered(changes):
            _write_by_style(pen, changes)
        else:
            for y, x, (text, style) in changes:
                pen.paint_for(text, style)
                pen.put(y, x, pen.half(style) if text == UPPER else text)
        return pen.end()

    def _changed(self, y: int, x: int, cells: list[Cell]) -> list[Change]:
        """Those of the cells from a column on that are not on the terminal, which count as written now."""
        line = self._lines.setdefault(y, [])
        line += [None] * (x + len(cells) - len(line))
        before = line[x : x + len(cells)]
        if before == cells:
            return []
        line[x : x + len(cells)] = cells
        if all(len(text) == 1 for text, _ in cells):
            return [(y, at, new) for at, (old, new) in enumerate(zip(before, cells, strict=True), x) if old != new]
        # terminals disagree on how wide such text is: all of it again, every part at its column
        return [(y, at, cell) for at, cell in enumerate(cells, x) if cell[0]]


class Changes(CompositorUpdate):
    """An update of which only that is written which differs from what is on the terminal."""

    def __init__(self, frame: Frame, update: LayoutUpdate | ChopsUpdate) -> None:
        self._frame, self._update = frame, update

    def render_segments(self, console: Console) -> str:  # noqa: ARG002 - Textual's signature
        """The sequences to be written."""
        return self._frame.write(self._update)


class Pen:
    """Sequences for the terminal, as few as it takes: it knows where it is, and which colours are set."""

    def __init__(self) -> None:
        """Begin anywhere, with the terminal's own colours."""
        self._parts: list[str] = []
        self._y = self._x = -1
        self._style = OWN

    def put(self, y: int, x: int, text: str) -> None:
        """Write a text at a line and a column, in the colours that are set."""
        if y != self._y or x < self._x:
            self._parts.append(f"\x1b[{y + 1};{x + 1}H{text}")
        elif x > self._x:
            self._parts.append(f"\x1b[{x - self._x}C{text}")
        else:
            self._parts.append(text)
        self._y, self._x = (y, x + 1) if len(text) == 1 else (-1, -1)

    def end(self) -> str:
        """All sequences, after which the terminal has its own colours again."""
        return "".join((*self._parts, "\x1b[0m" * (self._style != OWN)))

    def paint_for(self, text: str, style: CellStyle) -> None:
        """Set the colours that a text needs: a blank has no colour of its own, and halves can be turned."""
        if style == self._style:
            return
        if text == " " and style.is_plain and self._style.is_plain:
            style = style.with_color(self._style.color)
        elif text == UPPER and style.can_turn and self._differs(style.turned) < self._differs(style):
            style = style.turned
        if style != self._style:
            self.paint(style)

    def half(self, style: CellStyle) -> str:
        """The character that shows two colours above each other, as the colours were set."""
        return UPPER if style == self._style else LOWER

    def paint(self, style: CellStyle) -> None:
        """Set colours and attributes, those that are not set already."""
        codes, now = list[str](), self._style
        if style.attributes != now.attributes:
            if now.attributes:
                codes.append("0")
                now = OWN
            codes += style.attributes
        if style.color != now.color:
            codes.append(style.color)
        if style.background != now.background:
            codes.append(as_background(style.background))
        self._parts.append(f"\x1b[{';'.join(codes)}m")
        self._style = style

    def _differs(self, style: CellStyle) -> int:
        return (style.color != self._style.color) + (style.background != self._style.background)


def _are_scattered(changes: Sequence[Change]) -> bool:
    """Whether colours change from cell to cell."""
    if len(changes) <= FEW:
        return False
    turns = sum(before[2][1] is not after[2][1] for before, after in pairwise(changes))
    return turns > SCATTERED * len(changes)


def _write_by_style(pen: Pen, changes: Iterable[Change]) -> None:
    """All cells of a style after each other; of two halves it does not count which is the upper one."""
    by_style: dict[CellStyle, list[tuple[int, int, str]]] = {}
    for y, x, (text, style) in changes:
        if text == UPPER and style.can_turn and style.color > style.background:
            text, style = LOWER, style.turned
        by_style.setdefault(style, []).append((y, x, text))
    put = pen.put
    for style in sorted(by_style, key=lambda style: style.codes):
        pen.paint_for("", style)
        for y, x, text in by_style[style]:
            put(y, x, text)


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, Iterable[Strip]]]:
    """Line, first column and strips of everything that an update would write."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            yield y, update.region.x, strips
        return
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x <= last and end > first:
                yield y, x, (strip.crop(0, min(end, last) - x),)
