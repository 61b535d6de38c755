"""A table of words, each in the colour of its number; cells may come later."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import CELL_KEYS, Cell, Grid, GridWidget, next_size
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.records import dataclass
from tui_transformer.text.display import fit_label
from tui_transformer.views.numbers import short_number
from tui_transformer.views.view import Scale

_GAP = 1
_WITH_NUMBER = 16
"""Columns of a cell in which its number stands in full behind the word."""


@dataclass(frozen=True)
class WordCells:
    """The labels of a table, and the word of a cell with its number, which gives the colour; None while not known."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cell: Callable[[int, int], tuple[str, float] | None]
    scale: Scale
    number: Callable[[float], str] = short_number  # as it is written beside the word; "" where that says it


class WordTable(GridWidget, can_focus=True):
    """Rows and columns of words with a cell cursor; only what is on screen is asked for."""

    BINDINGS = CELL_KEYS
    COMPONENT_CLASSES: ClassVar[set[str]] = {"word-table--label", "word-table--marked", "word-table--cursor"}

    DEFAULT_CSS = """
    WordTable {
        height: 1fr;
        scrollbar-background: $background;
        scrollbar-corner-color: $background;
        & > .word-table--label { color: $foreground 65%; }
        & > .word-table--marked { color: $accent; text-style: bold; }
        & > .word-table--cursor { color: $background; background: $accent; text-style: bold; }
        &:nocolor > .word-table--cursor { color: $foreground; background: $background; text-style: bold reverse; }
        &:ansi > .word-table--cursor { text-style: bold reverse; }
    }
    """

    _cells = WordCells((), (), lambda _row, _column: None, Scale("sequential", 0.0, 1.0))
    _wanted_width: int | None = None

    def show(self, cells: WordCells, cursor: Cell) -> None:
        """Show words; where they are of the same table it stays scrolled as it is, as the mouse may have done."""
        same = (cells.rows, cells.columns, cursor) == (self._cells.rows, self._cells.columns, self.at)
        self._cells, self.at = cells, cursor
        if same:
            self.refresh()
        else:
            self._lay_out()

    def action_zoom(self, direction: int) -> None:
        width = self.grid.cell_width
        self._wanted_width = next_size((6, 9, 12, 16, 24), width, direction) or width
        self.on_resize()

    def on_resize(self) -> None:
        self._lay_out()
        self.scrolled()

    def scrolled(self) -> None:
        self.post_message(self.Moved(self))

    def render_line(self, y: int) -> Strip:
        grid, page, (_, columns) = self.grid, self.ink(), self.shown
        row, line = divmod(y - grid.header + self.scroll_offset.y, grid.cell_height)
        if not self._cells.rows or row >= grid.rows:
            return Strip.blank(self.size.width, page)
        heading, is_text = y < grid.header, line == grid.text_line
        hidden = self.scroll_offset.x - columns.start * grid.cell_width
        room = max(self.viewport.width - grid.gutter, 0)
        # what is left of a number that an edge cuts would be another number
        ends = -(-self.scroll_offset.x // grid.cell_width), (self.scroll_offset.x + room + _GAP) // grid.cell_width
        whole = range(*ends) or columns
        if heading:
            titles, width = self._cells.columns, grid.cell_width - _GAP
            segments = [
                Segment(
                    fit_label(titles[column] if column in whole else "", width) + " ",
                    self._label_style(marked=column == self.at[1]),
                )
                for column in columns
            ]
        else:
            segments = self._row(row, columns, whole, line - grid.text_line)
        cells = Strip(segments).crop_extend(hidden, hidden + room, page)
        label = self._cells.rows[row] if is_text and not heading else ""
        style = self._label_style(marked=row == self.at[0])
        strip = Strip([Segment(fit_label(label, grid.gutter - 1) + " ", style), *cells])
        return strip.adjust_cell_length(self.size.width, page)

    def _label_style(self, *, marked: bool) -> Style:
        return self.ink(f"word-table--{'marked' if marked else 'label'}")

    def _row(self, row: int, columns: range, whole: range, line: int) -> list[Segment]:
        """A line of a row: 0 is the one of the words, the next that of the numbers that have no room beside them."""
        colors = palette(self._cells.scale.kind, Surface.of(self.app), self.ink())
        cells = [self._cells.cell(row, column) for column in columns]
        numbers = np.array([np.nan if each is None else each[1] for each in cells])
        levels = colors.levels(numbers, self._cells.scale).tolist()
        segments: list[Segment] = []
        for column, each, level in zip(columns, cells, levels, strict=True):
            text = self._written(each, line) if column in whole else ""
            segments += self._word(text, level, colors, under=(row, column) == self.at)
        return segments

    def _written(self, cell: tuple[str, float] | None, line: int) -> str | None:
        """Text of a line of a cell; None where the cell is not known."""
        if cell is None:
            return None
        (word, value), width = cell, self.grid.cell_width - _GAP
        number, below = self._cells.number(value), self.grid.cell_height > 1 and width < _WITH_NUMBER
        if line:
            return number if line == 1 and below else ""
        room = width - 2
        if below or width < 11 or not number:  # a share of two digits has room from there on
            return word
        behind = f" {number:>7}" if width >= _WITH_NUMBER else f" {value:.2f}".replace(" 0.", " .").rjust(5)
        return fit_label(word, room - len(behind)) + behind

    def _word(self, text: str | None, level: int, colors: Palette, *, under: bool) -> list[Segment]:
        """A text in its colour; without colours a glyph for the level stands in front."""
        width, page = self.grid.cell_width - _GAP, self.ink()
        gap = Segment(" " * _GAP, page)
        if text is None:
            return [Segment(fit_label("·", width), self._label_style(marked=under)), gap]
        is_number = level < colors.masked  # it may be NaN
        style = colors.styles[level] if is_number else self._label_style(marked=False)
        style = self.ink("word-table--cursor") if under else style
        front = "" if colors.has_color else colors.glyphs[level][-1] if is_number else "×"
        word = fit_label(f" {text}" if colors.has_color else text, width - len(front))
        return [*([Segment(front, page)] if front else []), Segment(word, style), gap]

    def _lay_out(self) -> None:
        """Choose the width of cells: what was wished for, else so that all columns fit if they can."""
        rows, columns = len(self._cells.rows), len(self._cells.columns)
        gutter = min(max(map(len, self._cells.rows), default=0) + 2, self.size.width // 3)
        even = (self.size.width - gutter - 1) // max(columns, 1)
        width = self._wanted_width or max(9, min(even, 24))
        height = max(1, min((self.size.height - 2) // max(rows, 1), 3))
        self.lay_out(Grid(rows, columns, width, height, gutter, header=1))
