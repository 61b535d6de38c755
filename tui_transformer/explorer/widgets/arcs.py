"""Tokens on the left and on the right, and lines between them as thick as the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import CHOOSE, DOWN, ENDS, GridWidget
from tui_transformer.explorer.widgets.dots import Dots
from tui_transformer.explorer.widgets.grid import Grid
from tui_transformer.explorer.widgets.labels import fit_label
from tui_transformer.views.view import Values

WORD = 16
"""Columns of a token at most."""

NUMBER = 5
THICK = (0.02, 0.1, 0.3, 0.6, 0.85)
"""From each of these weights on a line is thicker; below the first there is none."""

NARROWEST = 30


class Arcs(GridWidget, can_focus=True):
    """Lines from every query on the left to the keys on the right; those of the current query are strong.

    Line k has the k-th query and the k-th key. What leads outside of what is shown goes to its edge.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*DOWN, *ENDS, *CHOOSE]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"arcs--quiet", "arcs--accent"}
    DEFAULT_CSS = """
    Arcs {
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-size: 1 1;
        & > .arcs--quiet { color: $foreground 35%; }
        & > .arcs--accent { color: $accent; text-style: bold; }
    }
    """

    class Moved(GridWidget.Moved):
        """The user went to another query; `index` is its number."""

    class Chosen(GridWidget.Chosen):
        """The user chose the query; `index` is its number."""

    def __init__(self, *, id: str | None = None) -> None:
        """Show nothing yet."""
        super().__init__(id=id)
        self._weights: Values = np.zeros((0, 0))
        self._query: Callable[[int], str] = str
        self._key: Callable[[int], str] = str
        self._drawn: tuple[int, list[Text]] = -1, []

    def show(self, weights: Values, query: Callable[[int], str], key: Callable[[int], str]) -> None:
        """Show weights, queries × keys, with the words of both."""
        self._weights, self._query, self._key = np.nan_to_num(weights), query, key
        self._lay_out()

    @property
    def page(self) -> int:
        """Lines of a screen but one."""
        return max(self.viewport.height - 1, 1)

    @property
    def extent(self) -> tuple[int, int]:
        """The queries."""
        return len(self._weights), 1

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._lay_out()

    def _lay_out(self) -> None:
        self._drawn = -1, []
        self.lay_out(Grid(max(self._weights.shape), 1, max(self.size.width, 1), 1, gutter=0, header=0))

    def follow(self, before: tuple[int, int]) -> None:
        """Every line is drawn anew: the lines of another query are strong."""
        self._drawn = -1, []
        super().follow(before)
        self.refresh()

    def scrolled(self) -> None:
        """Other tokens came into view."""
        self._drawn = -1, []

    def render_line(self, y: int) -> Strip:
        """One line: query, the lines between, key."""
        width, top = self.size.width, self.scroll_offset.y
        if self._drawn[0] != top or len(self._drawn[1]) != self.size.height:
            self._drawn = top, self._lines(top)
        text = self._drawn[1][y] if y < len(self._drawn[1]) else Text()
        text.end = ""
        segments = [Segment(s.text, self.ink() + (s.style or Style())) for s in text.render(self.app.console)]
        return Strip(segments).adjust_cell_length(width, self.ink())

    def _lines(self, top: int) -> list[Text]:
        height, width = self.size.height, self.size.width - self.scrollbar_size_vertical
        word = WORD if width >= 60 else max((width - NARROWEST) // 2 + 8, 6)
        canvas = Dots(max(width - 2 * (word + 1) - NUMBER - 2, 4), height)
        rows, plain, quiet, accent = (
            range(top, top + height),
            self.ink(),
            self.ink("arcs--quiet"),
            self.ink("arcs--accent"),
        )
        here = self.at[0]
        others = [query for query in rows if query < len(self._weights) and query != here]
        for query in (*others, *([here] if here < len(self._weights) else [])):
            self._draw(canvas, query, top, accent if query == here else quiet)
        return [self._line(canvas, row, row - top, word, (plain, quiet, accent)) for row in rows]

    def _draw(self, canvas: Dots, query: int, top: int, style: Style) -> None:
        """The lines of a query, the strongest last."""
        weights = self._weights[query]
        for key in np.argsort(weights, kind="stable").tolist():
            thickness = sum(weights[key] >= limit for limit in THICK)
            start, end = query - top + 0.5, min(max(key - top + 0.5, 0.0), canvas.height - 0.01)
            for k in range(thickness):
                shift = (k - (thickness - 1) / 2) / 4
                gap = 3 if thickness == 1 else 1
                canvas.line((0, start + shift), (canvas.width - 0.01, end + shift), style, gap)

    def _line(self, canvas: Dots, row: int, y: int, word: int, inks: tuple[Style, Style, Style]) -> Text:
        plain, quiet, accent = inks
        queries, keys = self._weights.shape
        here, text = row == self.at[0], Text("", plain, no_wrap=True)
        text.append("▸" if here else " ", accent)
        query = self._query(row) if row < queries else ""
        text.append(fit_label(query, word, "right"), accent if here else plain).append(" ")
        text.append_text(canvas.text(y, plain)).append(" ")
        if row >= keys:
            return text
        weight = float(self._weights[self.at[0], row]) if self.at[0] < queries else 0.0
        strong = weight >= THICK[1]
        text.append(fit_label(self._key(row), word), accent if strong else plain)
        return text.append(f"{weight:.2f}".replace("0.", ".").rjust(NUMBER), accent if strong else quiet)
