"""A matrix drawn line by line: column labels, row labels and cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.strip import Strip

from tui_transformer.explorer.widgets.axis_labels import Header
from tui_transformer.explorer.widgets.cell_table import CellTable
from tui_transformer.explorer.widgets.grid import Cell, Grid
from tui_transformer.explorer.widgets.labels import fit_label
from tui_transformer.explorer.widgets.palette import Levels
from tui_transformer.views.view import Scale, Tile, Values

Line = list[Segment]


@dataclass(frozen=True)
class Labels:
    """The labels of rows and columns and their styles; `marked` is for the row and the column of the cursor."""

    row: Callable[[int], str]
    column: Callable[[int], str]
    plain: Style
    marked: Style


class Drawing:
    """One tile on one grid. The lines of a row are kept while the same columns are on screen."""

    def __init__(
        self,
        grid: Grid,
        table: CellTable,
        tile: Tile,
        scale: Scale,
        labels: Labels,
        page: Style,
        edited: Sequence[tuple[range, range]] = (),
    ) -> None:
        self._grid = grid
        self._table = table
        self._tile = tile
        self._scale = scale
        self._labels = labels
        self.page = page
        self._edited = edited
        self._header = Header(labels.column, grid, labels.plain, labels.marked)
        self._kept: dict[int, tuple[Line, Line]] = {}
        self._kept_columns = range(0)

    def line(self, y: int, scroll: Offset, width: int, cursor: Cell) -> Strip:
        """One line of the screen, `width` columns wide."""
        grid = self._grid
        columns = grid.visible_columns(scroll, width)
        if y < grid.header:
            hidden = scroll.x - columns.start * grid.cell_width
            shown = range(hidden, hidden + width - grid.gutter)
            return self._strip("", self._header.segments(columns, cursor[1], shown), columns, scroll, width)
        row, line = divmod(y - grid.header + scroll.y, grid.cell_height)
        if row >= grid.rows:
            return Strip.blank(width, self.page)
        is_text = line == grid.text_line
        label = self._labels.row(row) if is_text else ""
        cells = self._cells(row, columns, cursor, is_text=is_text)
        return self._strip(label, cells, columns, scroll, width, marked=row == cursor[0])

    def _strip(
        self, label: str, cells: Line, columns: range, scroll: Offset, width: int, *, marked: bool = False
    ) -> Strip:
        gutter, cell_width = self._grid.gutter, self._grid.cell_width
        room, hidden = max(width - gutter, 0), scroll.x - columns.start * cell_width
        strip = Strip(cells, len(columns) * cell_width).crop_extend(hidden, hidden + room, self.page)
        fitted = fit_label(label, gutter - 1, "right") + " " * min(gutter, 1)
        style = self._labels.marked if marked and label else self._labels.plain
        return Strip([Segment(fitted, style), *strip], gutter + room).crop(0, width)

    def _cells(self, row: int, columns: range, cursor: Cell, *, is_text: bool) -> Line:
        if columns != self._kept_columns:
            self._kept, self._kept_columns = {}, columns
        if row not in self._kept:
            self._kept[row] = self._row(row, columns)
        text, fill = self._kept[row]
        line = text if is_text else fill
        if row != cursor[0] or cursor[1] not in columns:
            return line
        levels, _ = self._window(row, range(cursor[1], cursor[1] + 1))
        return self._table.with_cursor(line, cursor[1] - columns.start, int(levels[0]))

    def _row(self, row: int, columns: range) -> tuple[Line, Line]:
        levels, values = self._window(row, columns)
        fill = self._table.fill_line(levels) if self._grid.cell_height > 1 else []
        line = self._table.text_line(levels, values)
        for rows, part in self._edited:
            if row in rows:
                line = self._table.with_edits(line, [at for at, column in enumerate(columns) if column in part])
        return line, fill

    def _window(self, row: int, columns: range) -> tuple[Levels, Values]:
        """Levels and values of cells of a row; cells outside the tile have the level of missing ones."""
        tile, (height, width) = self._tile, self._tile.values.shape
        levels = np.full(len(columns), self._table.missing, dtype=np.intp)
        values = np.zeros(len(columns), dtype=tile.values.dtype)
        first, last = max(columns.start, tile.column), min(columns.stop, tile.column + width)
        if tile.row <= row < tile.row + height and first < last:
            at = slice(first - columns.start, last - columns.start)
            values[at] = tile.values[row - tile.row, first - tile.column : last - tile.column]
            levels[at] = self._table.palette.levels(values[at], self._scale)
        return levels, values
