"""Small pictures side by side in rows, each with a label, one of them selected; only those on screen are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import BindingType
from textual.geometry import Offset, Region, Size
from textual.strip import Strip

from tui_transformer.explorer.widgets.character_graphics import FEW, Picture, small_picture
from tui_transformer.explorer.widgets.cursor import ACROSS, CHOOSE, DOWN, ROW_ENDS, ZOOM, CursorWidget, next_size
from tui_transformer.explorer.widgets.grid import Cell, Grid
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.text.display import first_fitting, fit_label
from tui_transformer.views.view import Scale, Values

_MISSING = "·"
_MARK = "▌"

SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Columns of a picture that can be chosen; it has half as many lines."""

SMALLEST, READABLE = 11, 9
"""Columns of a picture that are chosen where not all tiles fit: on a screen of `ROOMY` columns, and on a narrow one."""

ROOMY = 100

STRETCHED = 2
"""How many times as high as wide a cell of a picture is drawn at most, or as wide as high."""


@dataclass(frozen=True)
class Tiles:
    """Contents of a grid.

    Attributes:
        count: How many tiles there are.
        columns: Tiles a row; None for as many as fit.
        picture: A tile's matrix, reduced to at most so many rows and columns; None while it is not known.
        labels: What is written over a tile, the longest text first; the first that fits is taken.
        row_label: What is written beside a row of a fixed number of columns.
        scale: The range that the colours of a tile stand for.
    """

    count: int
    columns: int | None
    picture: Callable[[int, int], Values | None]
    labels: Callable[[int], Sequence[str]]
    row_label: Callable[[int], str]
    scale: Callable[[int], Scale]


NOTHING = Tiles(0, 1, lambda _, __: None, lambda _: ("",), str, lambda _: Scale("sequential", 0.0, 1.0))


class TileGrid(CursorWidget, can_focus=True):
    """Tiles in rows. Only whole tiles are shown; the selected one is always among them."""

    BINDINGS: ClassVar[list[BindingType]] = [*ACROSS, *ROW_ENDS, *DOWN, *ZOOM, *CHOOSE]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tile-grid--label", "tile-grid--selected", "tile-grid--mark"}

    DEFAULT_CSS = """
    TileGrid {
        height: 1fr;
        width: 1fr;
        background: $background;
        color: $foreground;
        & > .tile-grid--label { color: $foreground 65%; }
        & > .tile-grid--mark { color: $accent; }
        & > .tile-grid--selected { color: $background; background: $accent; text-style: bold; }
        &:nocolor > .tile-grid--selected { color: $foreground; background: $background; text-style: bold reverse; }
        &:ansi > .tile-grid--selected { text-style: bold reverse; }
    }
    """

    class Moved(CursorWidget.Moved):
        """Another tile was selected, or others came on screen."""

    class Chosen(CursorWidget.Chosen):
        """A tile was chosen."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._tiles = NOTHING
        self._top = self._left = 0
        self._down = self._across = 1
        self._wanted_side: int | None = None
        self.grid = Grid(0, 1, SIZES[0] + 1, SIZES[0] // 2 + 1, gutter=1, header=0)
        self._pictures: dict[int, Picture] = {}

    def show(self, tiles: Tiles, selected: int) -> None:
        """Show tiles with one of them selected."""
        self._tiles = tiles
        self._lay_out(selected)

    def renew(self, indices: Sequence[int]) -> None:
        """Draw some tiles again: their pictures are known now."""
        for index in indices:
            self._pictures.pop(index, None)
        self.refresh()

    @property
    def side(self) -> int:
        """The columns of a picture, twice its lines."""
        return self.grid.cell_width - 1

    @property
    def shown(self) -> range:
        """The rows of tiles that are on screen."""
        return range(self._top, min(self._top + self._down, self.grid.rows))

    @property
    def shown_columns(self) -> range:
        """The columns of tiles that are on screen."""
        return range(self._left, min(self._left + self._across, self.columns))

    @property
    def columns(self) -> int:
        """Tiles a row."""
        return self.grid.columns

    @property
    def extent(self) -> Cell:
        """How many rows and columns there are."""
        return self.grid.rows, self.columns

    @property
    def page(self) -> int:
        """Rows of a screen."""
        return self._down

    def inside(self, cell: Cell) -> Cell:
        """The nearest row and column with a tile; the last row may be short."""
        row, column = super().inside(cell)
        return divmod(max(min(row * self.columns + column, self._tiles.count - 1), 0), self.columns)

    def cell_at(self, place: Offset) -> Cell | None:
        """Row and column of the tile at a place, None on labels and outside."""
        cell = self.grid.cell_at(place, self._scrolled)
        return cell if cell is not None and cell[0] in self.shown and cell[1] in self.shown_columns else None

    @property
    def marked(self) -> Region | None:
        """The selected tile."""
        return self.grid.cell_region(self.at, self._scrolled) if all(self.extent) else None

    def follow(self, before: Cell) -> None:
        """Draw the two tiles anew, or all where others come on screen."""
        if self._scroll():
            self.refresh()
        else:
            self.refresh(*(self.grid.cell_region(cell, self._scrolled) for cell in (before, self.at)))

    def action_step(self, rows: int, columns: int) -> None:
        """Select the tile so many rows and columns away; where tiles flow, the row's end leads to the next row."""
        if self._tiles.columns is None and (rows, abs(columns)) == (0, 1):
            self.move(divmod(max(self.index + columns, 0), self.columns))
        else:
            super().action_step(rows, columns)

    def action_zoom(self, direction: int) -> None:
        """Make pictures larger or smaller."""
        self._wanted_side = next_size(SIZES, self.side, direction) or self.side
        self._lay_out(self.index)
        self.post_message(self.Moved(self))

    def on_resize(self) -> None:
        """Fit as many tiles as there is room for."""
        self._lay_out(self.index)
        self.post_message(self.Moved(self))

    def restyled(self) -> None:
        """Follow a change of theme."""
        self._pictures.clear()

    def render_line(self, y: int) -> Strip:
        """Draw one line of the grid."""
        row, line = divmod(y, self.grid.cell_height)
        page = self.ink()
        if row + self._top not in self.shown or not self._tiles.count:
            return Strip.blank(self.size.width, page)
        segments = [self._row_label(row + self._top, line)]
        for column in self.shown_columns:
            segments += self._tile_line((row + self._top) * self.columns + column, line)
        return Strip(segments).adjust_cell_length(self.size.width, page)

    # Where tiles are

    def _lay_out(self, selected: int) -> None:
        """Choose the places for the size, and draw everything anew, with a tile selected."""
        tiles = self._tiles
        grid = self.grid = choose_grid(tiles.count, tiles.columns, self.size, self._gutter, self._wanted_side)
        self._across = max((self.size.width - grid.gutter) // grid.cell_width, 1)
        self._down = max(self.size.height // grid.cell_height, 1)
        self.at = divmod(selected, self.columns)
        self._pictures.clear()
        self._scroll()
        self.refresh()

    @property
    def _gutter(self) -> int:
        """Room for the row labels; none where tiles flow."""
        if self._tiles.columns is None or not self._tiles.count:
            return 0
        return cell_len(self._tiles.row_label((self._tiles.count - 1) // self._tiles.columns)) + 1

    @property
    def _scrolled(self) -> Offset:
        return Offset(self._left * self.grid.cell_width, self._top * self.grid.cell_height)

    def _scroll(self) -> bool:
        """Bring the selected tile on screen; whether anything moved."""
        row, column = self.at
        before = self._top, self._left
        self._top = reach(self._top, row, self._down, self.grid.rows)
        self._left = reach(self._left, column, self._across, self.columns)
        return before != (self._top, self._left)

    # How they are drawn

    def _row_label(self, row: int, line: int) -> Segment:
        text = self._tiles.row_label(row) if self._tiles.columns is not None and line == 0 else ""
        return Segment(fit_label(text, self.grid.gutter, "right"), self.ink("tile-grid--label"))

    def _tile_line(self, index: int, line: int) -> list[Segment]:
        """The mark in front of a tile, and one line of it."""
        page, side = self.ink(), self.side
        if index >= self._tiles.count:
            return [Segment(" " * (side + 1), page)]
        selected = index == self.index
        mark = Segment(_MARK, self.ink("tile-grid--mark")) if selected else Segment(" ", page)
        if line == 0:
            style = self.ink(f"tile-grid--{'selected' if selected else 'label'}")
            return [mark, Segment(fit_label(first_fitting(self._tiles.labels(index), side), side), style)]
        if index not in self._pictures:
            self._pictures[index] = self._draw(index)
        drawn = self._pictures[index]
        cells = drawn[line - 1] if line <= len(drawn) else []
        return [mark, *cells, Segment(" " * (side - len(cells)), page)]

    def _draw(self, index: int) -> Picture:
        """A tile's picture, every cell as many times as there is room for."""
        side = self.side
        values = self._tiles.picture(index, side)
        if values is None:
            return [[Segment(_MISSING, self.ink("tile-grid--label"))]]
        down, across = (max(side // max(size, 1), 1) for size in values.shape)
        down, across = min(down, STRETCHED * across), min(across, STRETCHED * down)
        larger = np.repeat(np.repeat(values, down, axis=0), across, axis=1)
        return small_picture(larger, self._tiles.scale(index), Surface.of(self.app), self.ink(), FEW)


def choose_grid(count: int, columns: int | None, size: Size, gutter: int, side: int | None) -> Grid:
    """The places of tiles for a screen: each with a column in front of it for its mark, and a line above for its label.

    Args:
        count: How many tiles there are.
        columns: Tiles a row; None for as many as fit.
        size: Columns × lines of the screen.
        gutter: Columns that the row labels take.
        side: A size that the user wants, or None for the largest with which all tiles fit, if they can.
    """

    def grid(side: int) -> Grid:
        across = columns or max((size.width - gutter) // (side + 1), 1)
        return Grid(-(-count // across), across, side + 1, side // 2 + 1, gutter, header=0)

    smallest = SMALLEST if size.width >= ROOMY else READABLE
    grids = map(grid, range(SIZES[-1], smallest, -1) if side is None else ())
    fitting = (
        each for each in grids if each.virtual_size.width <= size.width and each.virtual_size.height <= size.height
    )
    return next(fitting, grid(side or smallest))


def reach(first: int, wanted: int, room: int, count: int) -> int:
    """The nearest first row or column with which the wanted one is on screen."""
    return max(min(max(first, wanted - room + 1), wanted, count - room), 0)
