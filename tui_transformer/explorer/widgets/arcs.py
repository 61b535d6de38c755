"""Tokens on the left and on the right, and lines between them as thick as the weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import LINE_KEYS, Grid, GridWidget
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.text.display import fit_label
from tui_transformer.views.view import Values

NUMBER = 5
THICK = (0.02, 0.1, 0.3, 0.6, 0.85)
"""From each of these weights on a line is thicker; below the first there is none."""

CROWDED = {False: 1, True: 3}
"""How thick a line is at most where every token has one line: of other queries, and of the current one."""


class Arcs(GridWidget, can_focus=True):
    """Lines from every query on the left to the keys on the right; those of the current query are strong.

    Of those of the other queries the strongest are seen, as many as there are queries, and the rest is faded, or left
    out where there is no colour.

    Line k has the k-th query and the k-th key; where there is room, every token has several lines. What leads outside
    of what is shown goes to its edge.
    """

    BINDINGS = LINE_KEYS
    kept_lines = 1
    COMPONENT_CLASSES: ClassVar[set[str]] = {"arcs--faded", "arcs--quiet", "arcs--accent"}
    DEFAULT_CSS = """
    Arcs {
        overflow-x: hidden;
        & > .arcs--faded { color: $foreground 12%; }
        & > .arcs--quiet { color: $foreground 50%; }
        & > .arcs--accent { color: $accent; text-style: bold; }
    }
    """

    _weights: Values = np.zeros((0, 0))
    _query: Callable[[int], str] = str
    _key: Callable[[int], str] = str
    _drawn: tuple[int, list[Text]] = -1, []
    _pitch = 1

    def show(self, weights: Values, query: Callable[[int], str], key: Callable[[int], str]) -> None:
        self._weights, self._query, self._key = np.nan_to_num(weights), query, key
        self.on_resize()

    @property
    def limits(self) -> tuple[float, ...]:
        """Weights from which on the lines of the current query are thicker."""
        return THICK if self._pitch > 1 else THICK[: CROWDED[True]]

    @property
    def extent(self) -> tuple[int, int]:
        return len(self._weights), 1

    def on_resize(self) -> None:
        self._drawn = -1, []
        tokens, before = max(self._weights.shape), self.limits
        self._pitch = max(min(self.size.height // max(tokens, 1), 5), 1)
        if self.limits != before:
            self.post_message(self.Moved(self))
        self.lay_out(Grid(tokens, 1, max(self.size.width, 1), self._pitch, gutter=0, header=0))

    def follow(self, before: tuple[int, int]) -> None:
        """Every line is drawn anew: the lines of another query are strong."""
        self._drawn = -1, []
        super().follow(before)
        self.refresh()

    def restyled(self) -> None:
        self._drawn = -1, []
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, top = self.size.width, self.scroll_offset.y
        if self._drawn[0] != top or len(self._drawn[1]) != self.size.height:
            self._drawn = top, self._lines(top)
        text = self._drawn[1][y] if y < len(self._drawn[1]) else Text()
        text.end = ""
        segments = [Segment(s.text, self.ink() + (s.style or Style())) for s in text.render(self.app.console)]
        return Strip(segments).adjust_cell_length(width, self.ink())

    def _lines(self, top: int) -> list[Text]:
        height, width = self.size.height, self.size.width - self.scrollbar_size_vertical
        word = 16 if width >= 60 else max((width - 30) // 2 + 8, 6)  # where there is less room, words are cut
        canvas = Dots(min(max(width - 2 * (word + 1) - NUMBER - 2, 4), 110), height)
        plain, quiet, accent = self.ink(), self.ink("arcs--quiet"), self.ink("arcs--accent")
        here = self.at[0]
        shown = [row for row in range(len(self._weights)) if 0 <= self._center(row) - top < height]
        others, own = (
            sorted(
                (float(self._weights[query, key]), query, key)
                for query in queries
                for key in np.flatnonzero(self._weights[query] >= THICK[0]).tolist()
            )
            for queries in ([row for row in shown if row != here], [here] if here in shown else [])
        )
        weaker = len(others) - max(len(shown), 8)  # so many of them are seen, whatever is shown
        faded = self.ink("arcs--faded") if Surface.of(self.app).depth != "none" else None
        for number, (weight, query, key) in enumerate((*others, *own)):
            style = accent if query == here else faded if number < weaker else quiet
            if style is not None:
                self._draw(canvas, (weight, query, key), top, style)
        margin = max(width - canvas.width - 2 * (word + 1) - NUMBER - 2, 0) // 2
        return [self._line(canvas, top, y, (margin, word), (plain, quiet, accent)) for y in range(height)]

    def _center(self, row: int) -> float:
        return row * self._pitch + self._pitch // 2 + 0.5

    def _draw(self, canvas: Dots, link: tuple[float, int, int], top: int, style: Style) -> None:
        """The line of a weight, a query and a key."""
        weight, query, key = link
        most = len(THICK) if self._pitch > 1 else CROWDED[query == self.at[0]]
        thickness = min(sum(weight >= limit for limit in THICK), most)
        start = self._center(query) - top
        end = min(max(self._center(key) - top, 0.0), canvas.height - 0.01)
        for k in range(thickness):
            shift, width = (k - (thickness - 1) / 2) / 4, canvas.width - 0.01
            places = [  # of the straight pieces of a line that begins and ends level
                (width * t, start + shift + (end - start) * t * t * (3 - 2 * t)) for t in np.linspace(0, 1, 25).tolist()
            ]
            for one, other in pairwise(places):
                canvas.line(one, other, style, alone=True)

    def _line(self, canvas: Dots, top: int, y: int, columns: tuple[int, int], inks: tuple[Style, Style, Style]) -> Text:
        (row, part), (margin, word), (plain, quiet, accent) = divmod(top + y, self._pitch), columns, inks
        queries, keys = self._weights.shape
        named, here = part == self._pitch // 2, row == self.at[0]
        text = Text(" " * margin, plain, no_wrap=True)
        text.append("▸" if here and named else " ", accent)
        query = self._query(row) if row < queries and named else ""
        text.append(fit_label(query, word, "right"), accent if here else plain).append(" ")
        text.append_text(canvas.text(y, plain)).append(" ")
        if row >= keys or not named:
            return text
        weight = float(self._weights[self.at[0], row]) if self.at[0] < queries else 0.0
        strong = weight >= THICK[1]
        text.append(fit_label(self._key(row), word), accent if strong else plain)
        return text.append(f"{weight:.2f}".replace("0.", ".").rjust(NUMBER), accent if strong else quiet)


_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The dots of a cell, from above, left and right, as Unicode numbers them from 0x2800 on."""


class Dots:
    """Columns × lines of a terminal, each of two by four dots.

    Attributes:
        width: Columns.
        height: Lines.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(width, 1), max(height, 1)
        self._cells = [[0] * self.width for _ in range(self.height)]
        self._styles: dict[tuple[int, int], Style] = {}
        self._letters: dict[tuple[int, int], tuple[str, Style]] = {}

    def line(
        self, start: tuple[float, float], end: tuple[float, float], style: Style, gap: int = 1, *, alone: bool = False
    ) -> None:
        """Dots from a place to another, all of them or every `gap`-th; none outside.

        Places are counted in cells from the upper left corner. Where the line is `alone`, a cell loses the dots that it
        has in another style.
        """
        (x, y), (to_x, to_y) = start, end
        if not all(map(math.isfinite, (x, y, to_x, to_y))):
            return
        count = max(math.ceil(max(abs(to_x - x) * 2, abs(to_y - y) * 4)), 1)
        for k in range(0, count + 1, gap):
            across, down = x + (to_x - x) * k / count, y + (to_y - y) * k / count
            if 0 <= across < self.width and 0 <= down < self.height:
                column, line = math.floor(across), math.floor(down)
                if alone and self._styles.get((line, column), style) != style:
                    self._cells[line][column] = 0
                self._cells[line][column] |= _BITS[int((down - line) * 4)][int((across - column) * 2)]
                self._styles[line, column] = style

    def letter(self, x: float, y: float, letter: str, style: Style) -> None:
        if math.isfinite(x) and math.isfinite(y):
            place = min(max(math.floor(y), 0), self.height - 1), min(max(math.floor(x), 0), self.width - 1)
            self._letters[place] = letter, style

    def text(self, line: int, blank: Style) -> Text:
        text = Text("", blank, no_wrap=True)
        for column, bits in enumerate(self._cells[line]):
            letter, style = self._letters.get((line, column), (chr(0x2800 + bits) if bits else " ", None))
            text.append(letter, style or self._styles.get((line, column), blank))
        return text
