"""A canvas of dots, eight a cell, on which curves and lines are drawn; letters lie over them."""

from __future__ import annotations

import math

from rich.style import Style
from rich.text import Text

_FIRST = 0x2800
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The dots of a cell, from above, left and right."""


class Dots:
    """Columns × lines of a terminal, each of two by four dots.

    Attributes:
        width: Columns.
        height: Lines.
    """

    def __init__(self, width: int, height: int) -> None:
        """An empty canvas."""
        self.width, self.height = max(width, 1), max(height, 1)
        self._cells = [[0] * self.width for _ in range(self.height)]
        self._styles: dict[tuple[int, int], Style] = {}
        self._letters: dict[tuple[int, int], tuple[str, Style]] = {}

    def dot(self, x: float, y: float, style: Style) -> None:
        """Set the dot at a place, counted in cells from the upper left corner; none outside."""
        if not (math.isfinite(x) and math.isfinite(y)):
            return
        column, line = math.floor(x), math.floor(y)
        if 0 <= column < self.width and 0 <= line < self.height:
            self._cells[line][column] |= _BITS[int((y - line) * 4)][int((x - column) * 2)]
            self._styles[line, column] = style

    def line(self, start: tuple[float, float], end: tuple[float, float], style: Style, gap: int = 1) -> None:
        """Dots from a place to another, all of them or every `gap`-th."""
        (x, y), (to_x, to_y) = start, end
        if not all(map(math.isfinite, (x, y, to_x, to_y))):
            return
        count = max(math.ceil(max(abs(to_x - x) * 2, abs(to_y - y) * 4)), 1)
        for k in range(0, count + 1, gap):
            self.dot(x + (to_x - x) * k / count, y + (to_y - y) * k / count, style)

    def letter(self, x: float, y: float, letter: str, style: Style) -> None:
        """Put a letter over the dots of a cell."""
        if math.isfinite(x) and math.isfinite(y):
            place = min(max(math.floor(y), 0), self.height - 1), min(max(math.floor(x), 0), self.width - 1)
            self._letters[place] = letter, style

    def text(self, line: int, blank: Style) -> Text:
        """A line of the canvas."""
        text = Text("", blank, no_wrap=True)
        for column, bits in enumerate(self._cells[line]):
            letter, style = self._letters.get((line, column), (chr(_FIRST + bits) if bits else " ", None))
            text.append(letter, style or self._styles.get((line, column), blank))
        return text
