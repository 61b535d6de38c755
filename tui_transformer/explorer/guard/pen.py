"""Changed cells as sequences of a terminal, in few bytes: all text of the same style after each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from tui_transformer.explorer.guard.terminal_cells import OWN, Cell, CellStyle, as_background

Change = tuple[int, int, Cell]
"""A line, a column, and what stands there now."""


class Run(NamedTuple):
    """Text in a line from a column on, in one style; `width` is 0 where terminals disagree on how wide it is."""

    y: int
    x: int
    text: str
    width: int


NOWHERE = -1, -1

LEAST_BACK = 4
"""Columns for which a sequence is no longer than backspaces."""


def written(changes: Iterable[Change], columns: int) -> str:
    """The sequences that show changes, after which the terminal has its own colours again.

    A colour takes up to 19 bytes and a move to another place some 7, so it is moved rather than coloured.

    Args:
        changes: In the order of reading.
        columns: Of the terminal.
    """
    pen, runs = Pen(columns), by_style(changes)
    for style in sorted(runs, key=attrgetter("order")):
        pen.paint_for(style, runs[style])
        for run in runs[style]:
            pen.put(run)
    return pen.end()


def by_style(changes: Iterable[Change]) -> dict[CellStyle, list[Run]]:
    """The runs of every style, in the order of reading; blanks go with what stands beside them."""
    runs: dict[CellStyle, list[Run]] = {}
    texts, style, y, start, end = list[str](), OWN, -1, 0, 0

    def close() -> None:
        if texts:
            runs.setdefault(style, []).append(Run(y, start, "".join(texts), end - start))

    for line, at, (text, own) in changes:
        if line != y or at != end or len(text) > 1 or (own is not style and not _blank_alike(texts, text, own, style)):
            close()
            texts, style, y, start = [], own, line, at
        elif text != " ":
            style = own  # that of blanks before it is seen the same
        texts.append(text)
        end = at + 1 if len(text) == 1 else start
    close()
    return runs


def _blank_alike(texts: Sequence[str], text: str, own: CellStyle, style: CellStyle) -> bool:
    """Whether texts and one behind them are seen the same in one style: where either is blank, on one background."""
    if own.background != style.background or not (own.is_plain and style.is_plain):
        return False
    return text == " " or texts.count(" ") == len(texts)


def _along(across: int) -> str:
    """The shortest sequence to another column of the line: back over a few columns, backspaces."""
    if across == 0:
        return ""
    if -LEAST_BACK < across < 0:
        return "\b" * -across
    return f"\x1b[{'' if across == 1 else abs(across)}{'C' if across > 0 else 'D'}"


class Pen:
    """Sequences for the terminal, as few as it takes: it knows where it is, and which colours are set."""

    def __init__(self, columns: int) -> None:
        """Begin anywhere, with the terminal's own colours; behind the last column nobody knows where one is."""
        self._parts: list[str] = []
        self._columns = columns
        self._y, self._x = NOWHERE
        self._style = OWN

    def put(self, run: Run) -> None:
        """Write a text where it stands, in the colours that are set."""
        self._parts += self._way(run.y, run.x), run.text
        end = run.x + run.width
        self._y, self._x = (run.y, end) if run.width and end < self._columns else NOWHERE

    def _way(self, y: int, x: int) -> str:
        """The shortest sequence to a line and a column: from where it is, or from anywhere."""
        down, across, anyway = y - self._y, x - self._x, f"\x1b[{y + 1};{x + 1}H"
        if self._y < 0 or not 0 <= down <= 1:
            return anyway
        way = "\x1b[B" * down + _along(across)
        return way if len(way) < len(anyway) else anyway

    def end(self) -> str:
        """All sequences, after which the terminal has its own colours again."""
        return "".join((*self._parts, "\x1b[0m" * (self._style != OWN)))

    def paint_for(self, style: CellStyle, runs: Iterable[Run]) -> None:
        """Set the style of texts; blanks leave the colour of text as it is."""
        is_blank = style.is_plain and self._style.is_plain and all(run.text.isspace() for run in runs)
        self.paint(style.with_color(self._style.color) if is_blank else style)

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
        if codes:
            self._parts.append(f"\x1b[{';'.join(codes)}m")
        self._style = style
