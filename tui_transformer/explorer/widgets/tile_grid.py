"""Small pictures side by side, each with a label, one of them selected; only those on screen are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset, Region, Size
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import CELL_KEYS, ROW_KEYS, Cell, Grid, GridWidget, next_size
from tui_transformer.explorer.widgets.palette import FEW, Picture, Surface, small_picture
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import first_fitting, fit_label
from tui_transformer.views.step_view import pooled
from tui_transformer.views.view import Scale, Values

SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Columns of a picture that can be chosen; it has half as many lines."""

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


class TileGrid(GridWidget, can_focus=True):
    """Tiles in rows. Only whole tiles are shown; the selected one is always among them."""

    BINDINGS = CELL_KEYS
    only_whole = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tile-grid--label", "tile-grid--selected", "tile-grid--mark"}

    DEFAULT_CSS = """
    TileGrid {
        height: 1fr;
        width: 1fr;
        overflow: hidden hidden;
        & > .tile-grid--label { color: $foreground 65%; }
        & > .tile-grid--mark { color: $accent; }
        & > .tile-grid--selected { color: $background; background: $accent; text-style: bold; }
        &:nocolor > .tile-grid--selected { color: $foreground; background: $background; text-style: bold reverse; }
        &:ansi > .tile-grid--selected { text-style: bold reverse; }
    }
    """
    grid = Grid(0, 1, SIZES[0] + 1, SIZES[0] // 2 + 1, gutter=1, header=0)
    _tiles = Tiles(0, 1, lambda _, __: None, lambda _: ("",), str, lambda _: Scale("sequential", 0.0, 1.0))
    _wanted_side: int | None = None
    _pictures: dict[int, Picture]

    def show(self, tiles: Tiles, selected: int) -> None:
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
    def columns(self) -> int:
        return self.grid.columns

    @property
    def marked(self) -> Region | None:
        return self.grid.cell_region(self.at, self.scroll_offset) if all(self.extent) else None

    def inside(self, cell: Cell) -> Cell:
        """The nearest row and column with a tile; the last row may be short."""
        row, column = super().inside(cell)
        return divmod(max(min(row * self.columns + column, self._tiles.count - 1), 0), self.columns)

    def cell_at(self, place: Offset) -> Cell | None:
        cell, (rows, columns) = super().cell_at(place), self.shown
        return cell if cell is not None and cell[0] in rows and cell[1] in columns else None

    def action_step(self, rows: int, columns: int) -> None:
        """Select the tile so many rows and columns away; where tiles flow, the row's end leads to the next row."""
        if self._tiles.columns is None and (rows, abs(columns)) == (0, 1):
            self.move(divmod(max(self.index + columns, 0), self.columns))
        else:
            super().action_step(rows, columns)

    def action_zoom(self, direction: int) -> None:
        self._wanted_side = next_size(SIZES, self.side, direction) or self.side
        self.on_resize()

    def on_resize(self) -> None:
        self._lay_out(self.index)
        self.post_message(self.Moved(self))

    def restyled(self) -> None:
        self._pictures = {}

    def _lay_out(self, selected: int) -> None:
        """Choose the places for the size, and draw everything anew, with a tile selected."""
        tiles, (rows, columns), gutter = self._tiles, self.shown, 0
        if tiles.columns is not None and tiles.count:  # where tiles flow, rows have no labels
            gutter = cell_len(tiles.row_label((tiles.count - 1) // tiles.columns)) + 1
        grid = choose_grid(tiles.count, tiles.columns, self.size, gutter, self._wanted_side)
        self.at = divmod(selected, grid.columns)
        self._pictures = {}
        self.lay_out(grid, Offset(columns.start * grid.cell_width, rows.start * grid.cell_height))

    def render_line(self, y: int) -> Strip:
        grid, tiles, page, (rows, columns) = self.grid, self._tiles, self.ink(), self.shown
        first, line = divmod(y + self.scroll_offset.y, grid.cell_height)
        if grid.block:
            rows = range(first, grid.rows, grid.block) if first < grid.block else range(0)
        else:
            rows = range(first, first + (first in rows))
        segments = list[Segment]()
        for row in rows if tiles.count else ():
            label = tiles.row_label(row) if tiles.columns is not None and line == 0 else ""
            segments.append(Segment(fit_label(label, grid.gutter, "right"), self.ink("tile-grid--label")))
            for column in columns:
                segments += self._tile_line(row * grid.columns + column, line)
        return Strip(segments).adjust_cell_length(self.size.width, page)

    def _tile_line(self, index: int, line: int) -> list[Segment]:
        """The mark in front of a tile, and one line of it."""
        page, side = self.ink(), self.side
        if index >= self._tiles.count:
            return [Segment(" " * (side + 1), page)]
        selected = index == self.index
        mark = Segment("▌", self.ink("tile-grid--mark")) if selected else Segment(" ", page)
        if line == 0:
            style = self.ink(f"tile-grid--{'selected' if selected else 'label'}")
            return [mark, Segment(fit_label(first_fitting(self._tiles.labels(index), side), side), style)]
        if index not in self._pictures:
            self._pictures[index] = self._draw(index, side)
        return [mark, *_padded(self._pictures[index], line - 1, side, page)]

    def _draw(self, index: int, side: int) -> Picture:
        """A tile's picture, every cell as many times as there is room for."""
        values = self._tiles.picture(index, side)
        if values is None:
            return [[Segment("·", self.ink("tile-grid--label"))]]
        down, across = (max(side // max(size, 1), 1) for size in values.shape)
        down, across = min(down, STRETCHED * across), min(across, STRETCHED * down)
        larger = np.repeat(np.repeat(values, down, axis=0), across, axis=1)
        return small_picture(larger, self._tiles.scale(index), Surface.of(self.app), self.ink(), FEW)


def _padded(picture: Picture, line: int, width: int, page: Style) -> list[Segment]:
    drawn = picture[line] if line < len(picture) else []
    return [*drawn, Segment(" " * (width - len(drawn)), page)]


def choose_grid(count: int, columns: int | None, size: Size, gutter: int, side: int | None) -> Grid:
    """The places of tiles for a screen: each with a column in front of it for its mark, and a line above for its label.

    Args:
        count: How many tiles there are.
        columns: Tiles a row; None for as many as fit.
        size: Columns × lines of the screen.
        gutter: Columns that the row labels take.
        side: A size that the user wants, or None for the largest with which all tiles fit, if they can: rows may stand
            beside each other.
    """

    def grid(side: int) -> Grid:
        across = columns or max((size.width - gutter) // (side + 1), 1)
        return Grid(-(-count // across), across, side + 1, side // 2 + 1, gutter, header=0)

    def folded(side: int) -> Grid:
        flat = grid(side)
        return replace(flat, block=-(-flat.rows // max(size.width // flat.block_width, 1)))

    def fits(grid: Grid) -> bool:
        return grid.virtual_size.width <= size.width and grid.virtual_size.height <= size.height

    smallest = 11 if size.width >= 100 else 9  # where not all tiles fit
    sides = range(SIZES[-1], 4, -1) if side is None else (side,)  # the smallest so that rows beside each other fit
    flat = (grid(each) for each in sides if each > smallest or each == side)
    beside = (each for each in map(folded, sides if columns else ()) if each.block < each.rows)
    found = sorted(filter(fits, (*flat, *beside)), key=lambda grid: -grid.cell_width)  # flat ones before as large ones
    chosen = next(iter(found), grid(side or smallest))
    wide, tall = chosen.virtual_size.width > size.width, chosen.virtual_size.height > size.height
    return replace(
        chosen,
        slack=(size.width - gutter) % chosen.cell_width if wide else 0,
        slack_lines=size.height % chosen.cell_height if tall else 0,
    )


# The heads of a step in one row


_NARROWEST = 4
_GAP, _SMALL_GAP = 2, 1


class HeadThumbnails(GridWidget, can_focus=True):
    """Small heat maps of the heads with their numbers; two rows of a matrix share a line."""

    BINDINGS = ROW_KEYS
    only_whole = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {"thumbnails--number", "thumbnails--selected"}

    DEFAULT_CSS = """
    HeadThumbnails {
        height: auto;
        overflow: hidden hidden;
        & > .thumbnails--number { color: $foreground 65%; }
        & > .thumbnails--selected { color: $accent; text-style: bold; }
    }
    """

    tiles: Sequence[Values] = ()
    """The matrix of each head, as it is drawn."""

    scale = Scale("sequential", 0.0, 1.0)
    _of = 0
    _shape = (0, 0)
    _pictures: dict[int, Picture]

    def show(
        self, tiles: Sequence[Values], selected: int, scale: Scale, of: int = 0, shape: tuple[int, int] = (0, 0)
    ) -> None:
        """Show heads.

        Args:
            tiles: The matrix of each head, already reduced to about as many rows and columns as there is room for.
            selected: The head that is shown large.
            scale: The range that the colours stand for.
            of: How many heads there are, where not all are given.
            shape: Rows × columns of what a tile was made from.
        """
        self.tiles, self.scale, self._of, self._shape = tiles, scale, max(of, len(tiles)), shape
        self.at = 0, selected
        self._lay_out(self.shown[1].start)
        self.refresh(layout=self.styles.height is not None and self.styles.height.is_auto)

    @property
    def viewport(self) -> Size:
        """Columns and lines; of the last head on screen the gap may be cut."""
        width, height = super().viewport
        return Size(width + _GAP, height)

    @property
    def marked(self) -> Region | None:
        slot = self.grid.cell_width
        return Region(self.at[1] * slot - self.scroll_offset.x, 0, slot, 1) if self.tiles else None

    def on_resize(self) -> None:
        self._lay_out(0)

    def restyled(self) -> None:
        self._pictures = {}
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """One line of numbers, and a line for two rows of the tallest matrix."""
        return 1 + max(((len(tile) + 1) // 2 for tile in self.tiles), default=0)

    def render_line(self, y: int) -> Strip:
        segments, slot = list[Segment](), self.grid.cell_width
        for index in self.shown[1]:
            is_selected = index == self.at[1]
            if y == 0:
                style = self.ink(f"thumbnails--{'selected' if is_selected else 'number'}")
                number = f"{'▸' if is_selected else ' '}{index}"
                segments.append(Segment(fit_label(number, slot), style))
                continue
            if index not in self._pictures:
                tile = pooled(self.tiles[index], self._columns, axis=1)
                self._pictures[index] = small_picture(tile, self.scale, Surface.of(self.app), self.ink(), FEW)
            segments += _padded(self._pictures[index], y - 1, slot, self.ink())
        return Strip(segments).adjust_cell_length(self.size.width, self.ink())

    @property
    def _columns(self) -> int:
        """Columns of a picture at most: as many as it takes for all heads to be shown, but not too few."""
        slot = self.grid.cell_width
        return slot - (_GAP if slot > _NARROWEST + _GAP else _SMALL_GAP)

    def _lay_out(self, first: int) -> None:
        """Give every head as many columns as there are for it, and draw all anew, beginning with a head if possible."""
        count, slot, (width, height) = len(self.tiles), _NARROWEST, self.size
        if count:
            widest: int = max(tile.shape[1] for tile in self.tiles)
            slot = max(min(widest + _GAP, width // count), min(_NARROWEST, widest) + _SMALL_GAP)
        tall = max(self.get_content_height(self.size, self.size, width), height)
        self._pictures = {}
        slack = (width + _GAP) % slot if count * slot > width + _GAP else 0
        self.lay_out(Grid(1, count, slot, tall, gutter=0, header=0, slack=slack), Offset(first * slot, 0))

    def scroll_to_cursor(self, start: Offset | None = None) -> None:
        """Bring the selected head into view; say which are shown, and what a cell of a picture stands for."""
        super().scroll_to_cursor(start)
        heads = self.shown[1]
        parts = [f"{heads.start}–{heads.stop - 1} of {self._of} heads"] if len(heads) < self._of and heads else []
        if self.tiles and all(self._shape):
            tall = -(-self._shape[0] // max(len(self.tiles[0]), 1))
            wide = -(-self._shape[1] // max(min(self._columns, self.tiles[0].shape[1]), 1))
            parts += [f"a cell is the largest of up to {tall} × {wide}"] * (tall * wide > 1)
        self.border_subtitle = " · ".join(parts)
