"""A matrix as coloured cells with numbers, of any size, with a cell cursor, and its scale in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset
from textual.message import Message
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import CELL_KEYS, Cell, Grid, GridWidget, next_size
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.matrix_drawing import WIDTHS, CellTable, Drawing, Header, choose_grid
from tui_transformer.explorer.widgets.palette import Palette, Surface, bar_style, palette
from tui_transformer.records import dataclass
from tui_transformer.text.display import first_fitting, visible
from tui_transformer.views.numbers import (
    BRACKETS,
    SMALLEST_NUMBER_CELL,
    least_number_width,
    number_format,
    widest_label,
)
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import Frame, Scale, Tile, View


class HeatMap(GridWidget, can_focus=True):
    """A matrix drawn as a heat map.

    It is handed a view, a scale and a tile of values; cells outside the tile are drawn as not yet computed and asked
    for with `TileNeeded`.
    """

    BINDINGS = CELL_KEYS
    mixed_colors = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "heat-map--label",
        "heat-map--cursor-label",
        "heat-map--cursor",
        "heat-map--masked",
        "heat-map--missing",
    }

    DEFAULT_CSS = """
    HeatMap {
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

    @dataclass
    class Sized(Message):
        """The user made cells wider or narrower: of so many columns, or None as they fit."""

        width: int | None

    @dataclass
    class TileNeeded(Message):
        """Cells are on screen, or near it, that no tile holds; answer with `supply`."""

        heat_map: HeatMap
        rows: range
        columns: range

    wanted_width: int | None = None
    always_numbers = marks_row_alone = points = False
    _view: View | None = None
    _scale = Scale("sequential", 0.0, 1.0)
    _tile = Tile(0, 0, np.zeros((0, 0)))
    _requested: tuple[range, range] | None = None
    _how: tuple[int, int | None, bool, bool, bool] | None = None
    _label_width = _number_width = 0
    _row_label: Callable[[int], str] = str
    _column_label: Callable[[int], str] = str
    _drawing: Drawing | None = None
    _frame: Frame | None = None

    def show(
        self,
        view: View,
        scale: Scale,
        tile: Tile,
        *,
        number_width: int = 0,
        cursor: Cell | None = None,
        frame: Frame | None = None,
    ) -> None:
        """Show a view, of which a tile of values is at hand; one of another shape is scrolled as the cursor needs.

        In their place a moment on the way to them is drawn, where one is given. A number has at least `number_width`
        columns, so that the cells of two heat maps are as wide as each other.
        Without a cursor it stays where it is, as far as the matrix reaches.
        """
        how = number_width, self.wanted_width, self.always_numbers, self.marks_row_alone, self.points
        if frame is not self._frame:
            self._frame = frame
            self._redraw()
        if view is self._view and scale == self._scale and how == self._how:
            shown = self.shown
            if tile is not self._tile and not (all(shown) and self._tile.covers(*shown)):
                self._tile = tile
                self._redraw()
            self.put(cursor or self.at)
            self._request_missing()
            return
        self._how = how
        start = Offset() if self._view is not None and self._view.shape != view.shape else None
        self._view, self._scale, self._tile, self._requested = view, scale, tile, None
        self._number_width = number_width
        self._label_width = widest_label(view.rows)
        self._row_label = lru_cache(4096)(view.rows.label)  # more than a screen has
        self._column_label = lru_cache(4096)(view.columns.label)
        self.at = cursor or self.at
        self._lay_out(start)

    def clear(self) -> None:
        """Show nothing: another matrix is still to come."""
        self._view = self._drawing = self._frame = None
        self.lay_out(Grid(0, 0, 1, 1, 0, 0), Offset())

    def supply(self, tile: Tile, view: View) -> None:
        """Take the values of a tile that was asked for, if it is of the view that is still shown."""
        if view is not self._view:
            return
        self._tile = tile
        if self._requested and tile.covers(*self._requested):
            self._requested = None
        self._redraw()
        self._request_missing()

    @property
    def cursor(self) -> Cell:
        """Row and column of the cell under the cursor; setting it scrolls the cell into view."""
        return self.at

    @cursor.setter
    def cursor(self, cell: Cell) -> None:
        self.put(cell)

    def action_zoom(self, direction: int) -> None:
        self.wanted_width = next_size(WIDTHS, self.grid.cell_width, direction)
        self._lay_out()
        self.post_message(self.Sized(self.wanted_width))

    def on_resize(self) -> None:
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        seen = self.seen
        if not all(self.extent):
            return Strip.blank(seen.size.width, self.ink())
        self._drawing = self._drawing or self._make_drawing()
        cursor = (self.at[0], -1) if self.marks_row_alone else self.at
        strip = self._drawing.line(y, seen.scroll, seen.room.width, cursor)
        return strip.extend_cell_length(seen.size.width, self._drawing.page)

    def _lay_out(self, start: Offset | None = None) -> None:
        """Choose the grid for the size, and draw everything anew, scrolled from where it was or from `start`."""
        if self._view is None:
            return
        number_width = max(least_number_width(self._scale, integer=self._view.integer), self._number_width)
        grid = choose_grid(
            self._view.shape,
            self.container_size,
            label_width=self._label_width,
            number_width=number_width,
            cell_width=self.wanted_width,
            always=self.always_numbers or self.points or self._view.integer,
        )
        self._drawing = None
        scrolls = grid.virtual_size.height > self.container_size.height
        wanted: Literal["scroll", "auto"] = "scroll" if scrolls else "auto"
        if self.styles.overflow_x != wanted:  # where rows scroll: the screen is laid out anew as that bar comes or goes
            self.styles.overflow_x = wanted
        self.lay_out(grid, start)
        self._request_missing()

    def _redraw(self) -> None:
        self._drawing = None
        self.refresh()

    restyled = _redraw

    def _make_drawing(self) -> Drawing:
        ink, page, view, width = self.ink, self.ink(), self._view, self.grid.cell_width
        frame, surface = self._frame, Surface.of(self.app)
        tile, bars, front = (self._tile, False, None) if frame is None else (frame.tile, bool(frame.bars), frame.front)
        names = view is not None and view.integer  # as token IDs are: none is more than another
        number = None
        if width >= SMALLEST_NUMBER_CELL:
            exact = self.wanted_width is not None and self.wanted_width >= 9
            number = number_format(self._scale, width - BRACKETS, integer=names, exact=exact)
        table = _cell_table(
            Palette((page,), ("  ",)) if names else palette(self._scale.kind, surface, page),
            width,
            number,
            masked=ink("heat-map--masked"),
            missing=ink("heat-map--missing"),
            cursor=ink("heat-map--cursor-label" if self.points else "heat-map--cursor"),
            marks=("→", "←") if self.points else None,
            bar=page + bar_style(surface) if bars else None,
        )
        header = Header(self._column_label, self.grid, ink("heat-map--label"), ink("heat-map--cursor-label"))
        edited = () if view is None else view.edited
        return Drawing(header, self._row_label, table, tile, self._scale, page, edited, bars, front)

    def _request_missing(self) -> None:
        """Ask for the cells on screen that the tile lacks, with one screen more on each side."""
        if self._view is None or not self.viewport:
            return

        def with_margin(shown: range, size: int) -> range:
            return range(max(shown.start - len(shown), 0), min(shown.stop + len(shown), size))

        rows, columns = self.shown
        is_requested = self._requested is not None and all(
            asked.start <= part.start and part.stop <= asked.stop
            for asked, part in zip(self._requested, (rows, columns), strict=True)
        )
        if not rows or not columns or self._tile.covers(rows, columns) or is_requested:
            return
        self._requested = with_margin(rows, self.grid.rows), with_margin(columns, self.grid.columns)
        self.post_message(self.TileNeeded(self, *self._requested))

    scrolled = _request_missing


_cell_table = lru_cache(16)(CellTable)
"""The same while the scale and the styles are, as they mostly are after a key."""


class MatrixPane(Vertical):
    """Heat map above, legend below."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._titles: Sequence[str] = ("",)
        self.cells = HeatMap(id="cells")
        self._legend = Legend(id="legend")

    def compose(self) -> ComposeResult:
        yield self.cells
        yield self._legend

    def show_matrix(
        self,
        view: View,
        scale: Scale,
        tile: Tile,
        place: Place,
        *,
        titles: Sequence[str] = ("",),
        note: str = "",
        number_width: int = 0,
        frame: Frame | None = None,
    ) -> None:
        """Show a matrix with the cursor at a place, under the first of the titles that there is room for.

        Where it is on its way, what runs into the cell stands in the place of the scale.
        """
        self._titles = titles
        self.on_resize()
        cursor = place.row, place.column
        self.cells.show(view, scale, tile, number_width=number_width, cursor=cursor, frame=frame)
        absent, edited = view.absent_in(tile.values), bool(view.edited)
        note = note if frame is None else ""  # it is of the values
        infinite = bool(np.isposinf(tile.values).any())
        self._legend.show(
            None if view.integer else scale, note=note, absent=absent, edited=edited, infinite=infinite, frame=frame
        )

    def show_missing(self, title: str) -> None:
        """Show the frame of a matrix that is still to come."""
        self._titles = (title,)
        self.on_resize()
        self.cells.clear()
        self._legend.show(None)

    def on_resize(self) -> None:
        titles = [visible(title) for title in self._titles]
        self.border_title = Content(first_fitting(titles, self.outer_size.width - 6))  # the border has the others
