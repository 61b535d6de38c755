"""Pictures made of characters: bars in eighths of a cell, dots in braille, matrices in half blocks or in glyphs."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.views.view import Scale, Values

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
        self.width, self.height = max(width, 1), max(height, 1)
        self._cells = [[0] * self.width for _ in range(self.height)]
        self._styles: dict[tuple[int, int], Style] = {}
        self._letters: dict[tuple[int, int], tuple[str, Style]] = {}

    def line(self, start: tuple[float, float], end: tuple[float, float], style: Style, gap: int = 1) -> None:
        """Dots from a place to another, all of them or every `gap`-th; none outside.

        Places are counted in cells from the upper left corner.
        """
        (x, y), (to_x, to_y) = start, end
        if not all(map(math.isfinite, (x, y, to_x, to_y))):
            return
        count = max(math.ceil(max(abs(to_x - x) * 2, abs(to_y - y) * 4)), 1)
        for k in range(0, count + 1, gap):
            across, down = x + (to_x - x) * k / count, y + (to_y - y) * k / count
            if 0 <= across < self.width and 0 <= down < self.height:
                column, line = math.floor(across), math.floor(down)
                self._cells[line][column] |= _BITS[int((down - line) * 4)][int((across - column) * 2)]
                self._styles[line, column] = style

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


LEVELS, FEW = 17, 11
"""Colours of a picture, and of one among many: the fewer they are, the less it takes to write them."""

Picture = list[list[Segment]]
"""Lines of segments, each one column wide."""


def small_picture(tile: Values, scale: Scale, surface: Surface, page: Style, levels: int = LEVELS) -> Picture:
    """Draw a matrix, a column for each of its columns and a line for two of its rows."""
    colors = palette(scale.kind, surface, page, levels)
    if not colors.has_color:
        return _glyphs(tile, scale, colors)
    at = colors.levels(tile, scale)
    below = np.vstack([at[1::2], np.full((len(at) % 2, at.shape[1]), -1)])
    blocks = _blocks(colors, page)
    return [
        [blocks[pair[0]][pair[1]] for pair in zip(upper, lower, strict=True)]
        for upper, lower in zip(at[::2].tolist(), below.tolist(), strict=True)
    ]


@lru_cache(maxsize=16)
def _blocks(colors: Palette, page: Style) -> list[list[Segment]]:
    """A segment for each pair of levels above each other; masked cells, and −1 for outside, have the page's colour."""

    def block(top: Color | None, bottom: Color | None) -> Segment:
        if top is None:
            return Segment("▄" if bottom else " ", page + Style(color=bottom))
        return Segment("▀", page + Style(color=top, bgcolor=bottom))

    paints = (*(style.bgcolor for style in colors.styles), None, None)
    return [[block(top, bottom) for bottom in paints] for top in paints]


def _glyphs(tile: Values, scale: Scale, colors: Palette) -> Picture:
    """Two rows a line: of each pair the value further from 0."""
    padded = np.vstack([tile, np.full((len(tile) % 2, tile.shape[1]), np.nan)])
    upper, lower = padded[::2], padded[1::2]
    further = np.isneginf(upper) | np.isnan(upper) | (np.isfinite(lower) & (np.abs(lower) > np.abs(upper)))
    levels = colors.levels(np.where(further, lower, upper), scale)
    glyphs = [*(glyph[-1] for glyph in colors.glyphs), "×"]
    return [[Segment(glyphs[level], colors.styles[0]) for level in row] for row in levels.tolist()]
