"""A table of words, each in the colour of its number; cells may come later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_transformer.explorer.widgets.content_size import set_content_size
from tui_transformer.explorer.widgets.grid import Cell, Grid
from tui_transformer.explorer.widgets.labels import fit_label
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.views.view import Scale

WIDTHS = (6, 9, 12, 16, 24)
_NARROWEST, _WIDEST = 9, 16
_TALLEST = 3
_GAP = 1


@dataclass(frozen=True)
class WordCells:
    """What a table shows.

    Attributes:
        rows: The label of every row.
        columns: The label of every column.
        cell: The word of a cell and its number; None while it is not known.
        scale: The range that the colours stand for.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cell: Callable[[int, int], tuple[str, float] | None]
    scale: Scale


NOTHING = WordCells((), (), lambda _row, _column: None, Scale("sequential", 0.0, 1.0))


class WordTable(ScrollView, can_focus=True):
    """Rows and columns of words with a cell cursor; only what is on screen is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(0, -1)", "Left", show=False, id="words.left", tooltip="One cell to the left"),
        Binding("right,l", "step(0, 1)", "Right", show=False, id="words.right", tooltip="One cell to the right"),
        Binding("up,k", "step(-1, 0)", "Up", show=False, id="words.up", tooltip="One cell up"),
        Binding("down,j", "step(1, 0)", "Down", show=False, id="words.down", tooltip="One cell down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="words.page-up", tooltip="One screen up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="words.page-down", tooltip="One screen down"),
        Binding("home", "edge(0, -1)", "Row start", show=False, id="words.row-start", tooltip="First column"),
        Binding("end", "edge(0, 1)", "Row end", show=False, id="words.row-end", tooltip="Last column"),
        Binding("g", "edge(-1, 0)", "Top", show=False, id="words.top", tooltip="First row"),
        Binding("G", "edge(1, 0)", "Bottom", show=False, id="words.bottom", tooltip="Last row"),
        Binding("plus,equals_sign", "zoom(1)", "Wider", show=False, id="words.wider", tooltip="Wider cells"),
        Binding("minus", "zoom(-1)", "Narrower", show=False, id="words.narrower", tooltip="Narrower cells"),
        Binding("enter", "choose", "Choose", show=False, id="words.choose", tooltip="Choose the cell"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {"word-table--label", "word-table--marked", "word-table--cursor"}

    DEFAULT_CSS = """
    WordTable {
        height: 1fr;
        background: $background;
        color: $foreground;
        scrollbar-size: 1 1;
        scrollbar-background: $background;
        scrollbar-corner-color: $background;
        & > .word-table--label { color: $foreground 65%; }
        & > .word-table--marked { color: $accent; text-style: bold; }
        & > .word-table--cursor { color: $background; background: $accent; text-style: bold; }
        &:nocolor > .word-table--cursor { color: $foreground; background: $background; text-style: bold reverse; }
        &:ansi > .word-table--cursor { text-style: bold reverse; }
    }
    """

    class Moved(Message):
        """The cursor moved, or other cells came on screen."""

    class Chosen(Message):
        """The cell under the cursor was chosen."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        """Make a table that shows nothing yet."""
        super().__init__(name=name, id=id, classes=classes)
        self._cells = NOTHING
        self._cursor: Cell = (0, 0)
        self._wanted_width: int | None = None
        self._grid = Grid(0, 0, WIDTHS[0], 1, 0, 1)
        self._styles: dict[str, Style] = {}

    def show(self, cells: WordCells, cursor: Cell) -> None:
        """Show words."""
        self._cells, self._cursor = cells, cursor
        self._lay_out()

    @property
    def cursor(self) -> Cell:
        """Row and column of the cell under the cursor."""
        return self._cursor

    @property
    def shown(self) -> tuple[range, range]:
        """The rows and columns that are on screen."""
        size = self._viewport
        return (
            self._grid.visible_rows(self.scroll_offset, size.height),
            self._grid.visible_columns(self.scroll_offset, size.width),
        )

    def action_step(self, rows: int, columns: int) -> None:
        """Move the cursor by rows and columns."""
        self._move((self._cursor[0] + rows, self._cursor[1] + columns))

    def action_page(self, screens: int) -> None:
        """Move the cursor by screens of rows."""
        self.action_step(screens * max((self._viewport.height - 2) // self._grid.cell_height, 1), 0)

    def action_edge(self, row: int, column: int) -> None:
        """Move the cursor to the first or the last row or column."""
        far = len(self._cells.rows) + len(self._cells.columns)
        self.action_step(row * far, column * far)

    def action_zoom(self, direction: int) -> None:
        """Make cells wider or narrower."""
        width = self._grid.cell_width
        wider, narrower = [each for each in WIDTHS if each > width], [each for each in WIDTHS if each < width]
        self._wanted_width = (wider or [width])[0] if direction > 0 else (narrower or [width])[-1]
        self._lay_out()
        self.post_message(self.Moved())

    def action_choose(self) -> None:
        """Choose the cell under the cursor."""
        if self._cells.rows:
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the cell that is clicked; a double click chooses it."""
        place = event.get_content_offset(self)
        cell = self._grid.cell_at(place, self.scroll_offset) if place else None
        if cell is not None:
            self._move(cell)
            if event.chain == 2:
                self.action_choose()

    def on_resize(self) -> None:
        """Fit the cells to the new size."""
        self._lay_out()
        self.post_message(self.Moved())

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Ask for the cells that come into view."""
        super().watch_scroll_x(old_value, new_value)
        self.post_message(self.Moved())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for the cells that come into view."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved())

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines; styles, which are costly to ask for, are the same for all."""
        self._styles = {name: self.get_component_rich_style(name) for name in self.COMPONENT_CLASSES}
        self._styles["page"] = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the table."""
        grid, page, (_, columns) = self._grid, self._styles["page"], self.shown
        row, line = divmod(y - grid.header + self.scroll_offset.y, grid.cell_height)
        if not self._cells.rows or row >= grid.rows:
            return Strip.blank(self.size.width, page)
        heading, is_text = y < grid.header, line == grid.text_line
        segments = self._header(columns) if heading else self._row(row, columns, is_text=is_text)
        hidden = self.scroll_offset.x - columns.start * grid.cell_width
        room = max(self._viewport.width - grid.gutter, 0)
        cells = Strip(segments).crop_extend(hidden, hidden + room, page)
        label = self._cells.rows[row] if is_text and not heading else ""
        style = self._label_style(marked=row == self._cursor[0])
        strip = Strip([Segment(fit_label(label, grid.gutter - 1) + " ", style), *cells])
        return strip.adjust_cell_length(self.size.width, page)

    @property
    def _viewport(self) -> Size:
        return self.container_size - (self.scrollbar_size_vertical, self.scrollbar_size_horizontal)

    def _label_style(self, *, marked: bool) -> Style:
        return self._styles[f"word-table--{'marked' if marked else 'label'}"]

    def _header(self, columns: range) -> list[Segment]:
        labels, width = self._cells.columns, self._grid.cell_width - _GAP
        return [
            Segment(fit_label(labels[column], width) + " ", self._label_style(marked=column == self._cursor[1]))
            for column in columns
        ]

    def _row(self, row: int, columns: range, *, is_text: bool) -> list[Segment]:
        colors = palette(self._cells.scale.kind, Surface.of(self.app), self._styles["page"])
        found = [self._cells.cell(row, column) for column in columns]
        numbers = np.array([np.nan if each is None else each[1] for each in found])
        levels = colors.levels(numbers, self._cells.scale).tolist()
        segments: list[Segment] = []
        for column, each, level in zip(columns, found, levels, strict=True):
            shown = each if is_text or each is None else ("", each[1])
            segments += self._word(shown, level, colors, under=(row, column) == self._cursor)
        return segments

    def _word(self, found: tuple[str, float] | None, level: int, colors: Palette, *, under: bool) -> list[Segment]:
        """A word in its colour; without colours a glyph for the level stands in front."""
        width, page = self._grid.cell_width - _GAP, self._styles["page"]
        gap = Segment(" " * _GAP, page)
        if found is None:
            return [Segment(fit_label("·", width), self._label_style(marked=under)), gap]
        style = self._styles["word-table--cursor"] if under else colors.styles[level]
        if colors.has_color:
            return [Segment(fit_label(f" {found[0]}", width), style), gap]
        return [Segment(colors.glyphs[level][-1], page), Segment(fit_label(found[0], width - 1), style), gap]

    def _move(self, cell: Cell) -> None:
        rows, columns = len(self._cells.rows), len(self._cells.columns)
        self._cursor = max(min(cell[0], rows - 1), 0), max(min(cell[1], columns - 1), 0)
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved())

    def _scroll_to_cursor(self) -> None:
        if not self._viewport or not self._cells.rows:
            return
        target = self._grid.scroll_to_show(self._cursor, self.scroll_offset, self._viewport)
        if target != self.scroll_offset:
            self.scroll_to(target.x, target.y, animate=False, force=True)

    def _lay_out(self) -> None:
        """Choose the width of cells: what was wished for, else so that all columns fit if they can."""
        rows, columns = len(self._cells.rows), len(self._cells.columns)
        gutter = min(max(map(len, self._cells.rows), default=0) + 2, self.size.width // 3)
        even = (self.size.width - gutter - 1) // max(columns, 1)
        width = self._wanted_width or max(_NARROWEST, min(even, _WIDEST))
        height = max(1, min((self.size.height - 2) // max(rows, 1), _TALLEST))
        self._grid = Grid(rows, columns, width, height, gutter, 1)
        set_content_size(self, self._grid.virtual_size)
        self._scroll_to_cursor()
        self.refresh()
