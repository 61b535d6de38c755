"""Ready pieces of screen for every level of a palette, in cells of one size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from tui_transformer.explorer.widgets.numbers import NumberFormat
from tui_transformer.explorer.widgets.palette import Levels, Palette, readable
from tui_transformer.views.view import Values

MASKED_GLYPH = "×"
MISSING_GLYPH = "·"
EDITED_GLYPH = "*"

_CURSOR_CONTRAST = 2.5
_REVERSE = Style(bold=True, reverse=True)
_WHITE, _BLACK = Color.parse("#ffffff"), Color.parse("#000000")


@dataclass(frozen=True)
class Marks:
    """The styles beside the palette's: masked and not yet computed cells, and the cursor."""

    masked: Style
    missing: Style
    cursor: Style


class CellTable:
    """Cells of one width as segments: the palette's levels, then masked, then not yet computed."""

    def __init__(self, palette: Palette, marks: Marks, width: int, number: NumberFormat | None) -> None:
        self.palette = palette
        self._width = width
        self.missing = palette.masked + 1
        self._number = number
        self._styles = (*palette.styles, marks.masked, marks.missing)
        fills = [(glyph * width)[:width] for glyph in palette.glyphs]
        self._fills = self._segments([*fills, " " * width, " " * width])
        signs = [MASKED_GLYPH.center(width), MISSING_GLYPH.center(width)]
        self._plain = self._segments([*fills, *signs])
        self._brackets = ("▌", "▐") if palette.has_color and number else ("[", "]")
        self._cursor = marks.cursor
        self._cursor_styles = lru_cache(self._styles_under_cursor)
        self._numbers_at = _centered(width, number.column if number else 0)

    def fill_line(self, levels: Levels) -> list[Segment]:
        """A line of cells without numbers or signs."""
        return [self._fills[level] for level in levels.tolist()]

    def text_line(self, levels: Levels, values: Values) -> list[Segment]:
        """The line of cells that says something: numbers where they fit, signs for masked and missing cells.

        Args:
            levels: The level of each cell.
            values: The number of each cell; anything where the level is masked or missing.
        """
        if self._number is None:
            return [self._plain[level] for level in levels.tolist()]
        return [
            Segment(self._written(value), self._styles[level]) if level < self.palette.masked else self._plain[level]
            for level, value in zip(levels.tolist(), values.tolist(), strict=True)
        ]

    def with_edits(self, line: list[Segment], edited: Sequence[int]) -> list[Segment]:
        """The line with the cells at these indices marked as set."""
        marked = list(line)
        for at in edited:
            marked[at] = Segment(EDITED_GLYPH + line[at].text[1:], line[at].style)
        return marked

    def with_cursor(self, line: list[Segment], at: int, level: int) -> list[Segment]:
        """The line with the cell at an index marked by brackets."""
        text, (bracket, inside) = line[at].text, self._cursor_styles(level)
        left, right = self._brackets
        marked = [Segment(left, bracket), Segment(text[1:-1], inside), Segment(right, bracket)]
        return [*line[:at], *marked, *line[at + 1 :]]

    def _segments(self, texts: Sequence[str]) -> list[Segment]:
        return [Segment(text, style) for text, style in zip(texts, self._styles, strict=True)]

    def _written(self, value: float) -> str:
        text = self._number(value) if self._number and math.isfinite(value) else "inf"
        left, width, right = self._numbers_at
        return left + text.rjust(width) + right if len(text) <= width else text.center(self._width)

    def _styles_under_cursor(self, level: int) -> tuple[Style, Style]:
        """The styles of the brackets and of what is inside."""
        cell, cursor = self._styles[level], self._cursor
        if cell.bgcolor is None or cursor.color is None or not self.palette.has_color:
            return (cell + _REVERSE,) * 2
        if self._number is None:
            return (Style(color=readable((_BLACK, _WHITE), cursor.color), bgcolor=cursor.color, bold=True),) * 2
        bracket = readable((cursor.color, _WHITE, _BLACK), cell.bgcolor, _CURSOR_CONTRAST)
        inside = readable((_WHITE, _BLACK), cell.bgcolor)
        return cell + Style(color=bracket, bold=True), cell + Style(color=inside, bold=True)


def _centered(width: int, inner: int) -> tuple[str, int, str]:
    left = (width - inner) // 2
    return " " * left, inner, " " * (width - inner - left)
