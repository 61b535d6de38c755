"""A matrix as coloured cells with numbers, of any size, with a cell cursor."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_transformer.explorer.widgets.axis_labels import widest_label
from tui_transformer.explorer.widgets.cell_table import CellTable, Marks
from tui_transformer.explorer.widgets.content_size import set_content_size
from tui_transformer.explorer.widgets.drawing import Drawing, Labels
from tui_transformer.explorer.widgets.grid import SMALLEST_NUMBER_CELL, WIDTHS, Cell, Grid, choose_grid
from tui_transformer.explorer.widgets.numbers import BRACKETS, NumberFormat, number_format, shortest_width
from tui_transformer.explorer.widgets.palette import Surface, palette
from tui_transformer.views.view import Scale, Tile, View

_FIRST_EXACT_WIDTH = 9
_LABELS_KEPT = 4096


class HeatMap(ScrollView, can_focus=True):
    """A matrix drawn as a heat map.

    It is handed a view, a scale and a tile of values; cells outside the tile are drawn as not yet computed and asked
    for with `TileNeeded`.
    """

    HELP = """\
## Heat map

A cell is one number. Its colour is its place on the scale below the matrix; `×` is a masked cell, `·` one that is not
yet computed.

| key | does |
|---|---|
| ← ↓ ↑ → or h j k l | one cell |
| page up, page down | one screen |
| ctrl+u, ctrl+d | half a screen |
| home, end | first and last column |
| g, G | first and last row |
| + − | wider and narrower cells: more digits, or colours alone |
| enter | choose the cell |
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(0, -1)", "Left", show=False, id="heatmap.left", tooltip="One cell to the left"),
        Binding("right,l", "step(0, 1)", "Right", show=False, id="heatmap.right", tooltip="One cell to the right"),
        Binding("up,k", "step(-1, 0)", "Up", show=False, id="heatmap.up", tooltip="One cell up"),
        Binding("down,j", "step(1, 0)", "Down", show=False, id="heatmap.down", tooltip="One cell down"),
        Binding("pageup", "page(-1.0)", "Page up", show=False, id="heatmap.page-up", tooltip="One screen up"),
        Binding("pagedown", "page(1.0)", "Page down", show=False, id="heatmap.page-down", tooltip="One screen down"),
        Binding("ctrl+u", "page(-0.5)", "Half up", show=False, id="heatmap.half-up", tooltip="Half a screen up"),
        Binding("ctrl+d", "page(0.5)", "Half down", show=False, id="heatmap.half-down", tooltip="Half a screen down"),
        Binding("home", "column('first')", "Row start", show=False, id="heatmap.row-start", tooltip="First column"),
        Binding("end", "column('last')", "Row end", show=False, id="heatmap.row-end", tooltip="Last column"),
        Binding("g", "row('first')", "Top", show=False, id="heatmap.top", tooltip="First row"),
        Binding("G", "row('last')", "Bottom", show=False, id="heatmap.bottom", tooltip="Last row"),
        Binding("plus,equals_sign", "zoom(1)", "Wider", show=False, id="heatmap.wider", tooltip="Wider cells"),
        Binding("minus", "zoom(-1)", "Narrower", show=False, id="heatmap.narrower", tooltip="Narrower cells"),
        Binding("enter", "choose", "Choose", show=False, id="heatmap.choose", tooltip="Choose the cell"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "heat-map--label",
        "heat-map--cursor-label",
        "heat-map--cursor",
        "heat-map--masked",
        "heat-map--missing",
    }

    DEFAULT_CSS = """
    HeatMap {
        background: $background;
        color: $foreground;
        scrollbar-size: 1 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        scrollbar-corner-color: $background;
        & > .heat-map--label { color: $foreground 65%; }
        & > .heat-map--cursor-label { color: $accent; text-style: bold; }
        & > .heat-map--cursor { color: $foreground; }
        & > .heat-map--masked { color: $foreground 45%; background: $foreground 6%; }
        & > .heat-map--missing { color: $foreground 45%; }
        &:focus > .heat-map--cursor { color: $accent; }
        &:ansi > .heat-map--cursor-label { text-style: bold reverse; }
        &:nocolor > .heat-map--cursor-label { text-style: bold reverse; }
    }
    """

    class _CellMessage(Message):
        def __init__(self, heat_map: HeatMap, row: int, column: int) -> None:
            super().__init__()
            self.heat_map = heat_map
            self.row = row
            self.column = column

        @property
        def control(self) -> HeatMap:
            """The heat map that sent the message."""
            return self.heat_map

    class CellMoved(_CellMessage):
        """The user moved the cursor to a cell."""

    class CellChosen(_CellMessage):
        """The user chose a cell."""

    class TileNeeded(Message):
        """Cells are on screen, or near it, that no tile holds; answer with `supply`."""

        def __init__(self, heat_map: HeatMap, rows: range, columns: range) -> None:
            super().__init__()
            self.heat_map = heat_map
            self.rows = rows
            self.columns = columns

        @property
        def control(self) -> HeatMap:
            """The heat map that sent the message."""
            return self.heat_map

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        """Make a heat map that shows nothing yet."""
        super().__init__(name=name, id=id, classes=classes)
        self._view: View | None = None
        self._scale = Scale("sequential", 0.0, 1.0)
        self._tile = Tile(0, 0, np.zeros((0, 0)))
        self._requested: tuple[range, range] | None = None
        self._cursor: Cell = (0, 0)
        self._wanted_width: int | None = None
        self._label_width = self._number_width = 0
        self._row_label: Callable[[int], str] = str
        self._column_label: Callable[[int], str] = str
        self._grid = Grid(0, 0, WIDTHS[0], 1, 0, 0)
        self._drawing: Drawing | None = None

    def show(
        self,
        view: View,
        scale: Scale,
        tile: Tile,
        *,
        cell_width: int | None = None,
        number_width: int = 0,
        keep_cursor: bool = True,
        cursor: Cell | None = None,
    ) -> None:
        """Show a view; one of another shape is scrolled no further than the cursor needs.

        Args:
            view: The matrix.
            scale: The range that the colours stand for.
            tile: The values at hand.
            cell_width: Columns a cell, or None to keep what the user chose (at first: what fits).
            number_width: Columns a number at least, so that the cells of two heat maps are as wide as each other.
            keep_cursor: Whether the cursor stays where it is, as far as the matrix reaches.
            cursor: Where else it goes.
        """
        start = Offset() if self._view is not None and self._view.shape != view.shape else None
        self._view, self._scale, self._tile, self._requested = view, scale, tile, None
        self._wanted_width = cell_width or self._wanted_width
        self._number_width = number_width
        self._label_width = widest_label(view.rows)
        self._row_label = lru_cache(_LABELS_KEPT)(view.rows.label)
        self._column_label = lru_cache(_LABELS_KEPT)(view.columns.label)
        self._cursor = self._inside(cursor or (self._cursor if keep_cursor else (0, 0)))
        self._lay_out(start)

    def supply(self, tile: Tile) -> None:
        """Take the values of a tile that was asked for."""
        self._tile = tile
        if self._requested and tile.covers(*self._requested):
            self._requested = None
        self._redraw()
        self._request_missing()

    @property
    def cursor(self) -> Cell:
        """Row and column of the cell under the cursor; setting it scrolls the cell into view."""
        return self._cursor

    @cursor.setter
    def cursor(self, cell: Cell) -> None:
        old, self._cursor = self._cursor, self._inside(cell)
        if old != self._cursor:
            self.refresh(*self._regions_of(old), *self._regions_of(self._cursor))
        self._scroll_to_cursor()

    @property
    def cell_width(self) -> int:
        """Columns that a cell takes."""
        return self._grid.cell_width

    @property
    def cell_size(self) -> Size:
        """Columns and lines that a cell takes."""
        return Size(self._grid.cell_width, self._grid.cell_height)

    def action_step(self, rows: int, columns: int) -> None:
        """Move the cursor by rows and columns."""
        self._move((self._cursor[0] + rows, self._cursor[1] + columns))

    def action_page(self, screens: float) -> None:
        """Move the cursor by screens of rows."""
        rows = max((self._viewport.height - self._grid.header) // self._grid.cell_height, 1)
        self.action_step(int(screens * max(rows, 2)), 0)

    def action_column(self, which: str) -> None:
        """Move the cursor to the first or the last column."""
        self._move((self._cursor[0], 0 if which == "first" else self._grid.columns - 1))

    def action_row(self, which: str) -> None:
        """Move the cursor to the first or the last row."""
        self._move((0 if which == "first" else self._grid.rows - 1, self._cursor[1]))

    def action_zoom(self, direction: int) -> None:
        """Make cells wider or narrower; past the widest and the narrowest the width is chosen again to fit."""
        current = self._grid.cell_width
        wider = next((width for width in WIDTHS if width > current), None)
        narrower = next((width for width in reversed(WIDTHS) if width < current), None)
        self._wanted_width = wider if direction > 0 else narrower
        self._lay_out()

    def action_choose(self) -> None:
        """Choose the cell under the cursor."""
        if self._holds_cells():
            self.post_message(self.CellChosen(self, *self._cursor))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the cell that is clicked; a double click chooses it."""
        place = event.get_content_offset(self)
        cell = self._grid.cell_at(place, self.scroll_offset) if place else None
        if cell is None:
            return
        self._move(cell)
        if event.chain == 2:
            self.action_choose()

    def on_resize(self) -> None:
        """Fit the cells to the new size."""
        self._lay_out()

    def on_focus(self) -> None:
        """Show that the cursor is active."""
        self._redraw()

    def on_blur(self) -> None:
        """Show that the cursor is not active."""
        self._redraw()

    def notify_style_update(self) -> None:
        """Follow a change of theme."""
        super().notify_style_update()
        self._redraw()

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Draw and ask for the cells that come into view."""
        super().watch_scroll_x(old_value, new_value)
        self._request_missing()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw and ask for the cells that come into view."""
        super().watch_scroll_y(old_value, new_value)
        self._request_missing()

    def render_line(self, y: int) -> Strip:
        """Draw one line of the widget."""
        if not self._holds_cells():
            return Strip.blank(self.size.width, self.rich_style)
        self._drawing = self._drawing or self._make_drawing()
        strip = self._drawing.line(y, self.scroll_offset, self._viewport.width, self._cursor)
        return strip.extend_cell_length(self.size.width, self._drawing.page)

    @property
    def _viewport(self) -> Size:
        return self.container_size - (self.scrollbar_size_vertical, self.scrollbar_size_horizontal)

    def _holds_cells(self) -> bool:
        return self._grid.rows > 0 and self._grid.columns > 0

    def _inside(self, cell: Cell) -> Cell:
        rows, columns = self._view.shape if self._view else (1, 1)
        return max(min(cell[0], rows - 1), 0), max(min(cell[1], columns - 1), 0)

    def _move(self, cell: Cell) -> None:
        old = self._cursor
        self.cursor = cell
        if self._cursor != old:
            self.post_message(self.CellMoved(self, *self._cursor))

    def _regions_of(self, cell: Cell) -> tuple[Region, Region, Region]:
        cell_region = self._grid.cell_region(cell, self.scroll_offset)
        label_region = self._grid.label_region(cell[0], self.scroll_offset)
        return cell_region, label_region, Region(0, 0, self.size.width, self._grid.header)

    def _scroll_to_cursor(self, start: Offset | None = None) -> None:
        if not self._viewport:
            return
        target = self._grid.scroll_to_show(self._cursor, self.scroll_offset if start is None else start, self._viewport)
        if target != self.scroll_offset:
            self.scroll_to(target.x, target.y, animate=False, force=True)

    def _lay_out(self, start: Offset | None = None) -> None:
        """Choose the grid for the size, and draw everything anew, scrolled from where it was or from `start`."""
        if self._view is None:
            return
        number_width = max(least_number_width(self._scale, integer=self._view.integer), self._number_width)
        self._grid = choose_grid(
            self._view.shape,
            self.container_size,
            label_width=self._label_width,
            number_width=number_width,
            cell_width=self._wanted_width,
        )
        set_content_size(self, self._grid.virtual_size)
        self._scroll_to_cursor(start)
        self._redraw()
        self._request_missing()

    def _redraw(self) -> None:
        self._drawing = None
        self.refresh()

    def _make_drawing(self) -> Drawing:
        style = self.get_component_rich_style
        colors = palette(self._scale.kind, Surface.of(self.app), self.rich_style)
        marks = Marks(style("heat-map--masked"), style("heat-map--missing"), style("heat-map--cursor"))
        table = CellTable(colors, marks, self._grid.cell_width, self._number_format())
        plain, marked = style("heat-map--label"), style("heat-map--cursor-label")
        labels = Labels(self._row_label, self._column_label, plain, marked)
        return Drawing(self._grid, table, self._tile, self._scale, labels, self.rich_style)

    def _number_format(self) -> NumberFormat | None:
        width, wanted = self._grid.cell_width, self._wanted_width
        if width < SMALLEST_NUMBER_CELL:
            return None
        integer = self._view is not None and self._view.integer
        exact = wanted is not None and wanted >= _FIRST_EXACT_WIDTH
        return number_format(self._scale, width - BRACKETS, integer=integer, exact=exact)

    def _request_missing(self) -> None:
        """Ask for the cells on screen that the tile lacks, with one screen more on each side."""
        if self._view is None or not self._viewport:
            return
        rows = self._grid.visible_rows(self.scroll_offset, self._viewport.height)
        columns = self._grid.visible_columns(self.scroll_offset, self._viewport.width)
        if not rows or not columns or self._tile.covers(rows, columns) or self._is_requested(rows, columns):
            return
        self._requested = _with_margin(rows, self._grid.rows), _with_margin(columns, self._grid.columns)
        self.post_message(self.TileNeeded(self, *self._requested))

    def _is_requested(self, rows: range, columns: range) -> bool:
        return self._requested is not None and all(map(_holds, self._requested, (rows, columns)))


def least_number_width(scale: Scale, *, integer: bool) -> int:
    """The narrowest cell in which the numbers of a scale are told apart."""
    return max(shortest_width(scale, integer=integer) + BRACKETS, SMALLEST_NUMBER_CELL)


def _holds(whole: range, part: range) -> bool:
    return whole.start <= part.start and part.stop <= whole.stop


def _with_margin(shown: range, size: int) -> range:
    return range(max(shown.start - len(shown), 0), min(shown.stop + len(shown), size))
