"""A matrix drawn line by line: column labels, row labels and cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rich.cells import set_cell_size
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset, Size
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import Cell, Grid
from tui_transformer.explorer.widgets.palette import Levels, Palette, readable
from tui_transformer.records import dataclass, field
from tui_transformer.text.display import cells, fit_label, visible
from tui_transformer.views.numbers import SMALLEST_NUMBER_CELL, NumberFormat
from tui_transformer.views.view import Scale, Tile, Values

MASKED_GLYPH, MISSING_GLYPH, EDITED_GLYPH = "×", "·", "*"

BEYOND_GLYPHS = "▲▼"
"""Signs of values above and below the scale."""

BAR_HEIGHTS = " ▁▂▃▄▅▆▇█"
"""Bars by the eighths of a line."""

_WHITE, _BLACK = Color.parse("#ffffff"), Color.parse("#000000")
_STEPS = (1, 2, 5, 10, 20, 50, 100)

Line = list[Segment]


class Block(NamedTuple):
    """Levels and values of some rows and columns, and in which columns of a row, by its place, one is off the scale."""

    rows: range
    columns: range
    levels: Levels
    values: Values
    beyond: Mapping[int, Sequence[int]]


@dataclass(eq=False)
class Drawing:
    """One tile on one grid. The lines of a row are kept while the same columns are on screen.

    Attributes:
        page: The style of what holds no cell.
        edited: Rows × columns of the cells that were set.
        bars: Whether cells are bars of shares of 1, without numbers.
        front: The row that is being made, which is pointed at; None for none.
    """

    header: Header
    row_label: Callable[[int], str]
    table: CellTable
    tile: Tile
    scale: Scale
    page: Style
    edited: Sequence[tuple[range, range]] = ()
    bars: bool = False
    front: int | None = None
    _kept: dict[int, tuple[Line, Line, Levels]] = field(default_factory=dict)
    _kept_columns: range = range(0)
    _block: Block | None = None

    def line(self, y: int, scroll: Offset, width: int, cursor: Cell) -> Strip:
        """One line of the screen, `width` columns wide."""
        grid, label, pointer, style = self.header.grid, "", " ", self.header.plain
        _, columns = grid.visible(scroll, Size(width, 0))
        across, hidden = len(columns) * grid.cell_width, scroll.x - columns.start * grid.cell_width
        row, line = divmod(y - grid.header + scroll.y, grid.cell_height)
        if y < grid.header:
            cells = self.header.segments(columns, cursor[1], range(hidden, hidden + width - grid.gutter))
            across = max(across, sum(each.cell_length for each in cells))  # the last label may reach beyond its column
        elif row >= grid.rows:
            return Strip.blank(width, self.page)
        elif self.bars:
            cells = self._bars(row, columns, cursor, line)
        else:
            shown = range(hidden, hidden + width - grid.gutter)
            cells = self._cells(row, columns, cursor, shown if line == grid.text_line else None)
        if y >= grid.header and line == grid.text_line:
            label, pointer = self.row_label(row), "▸" if row == self.front else " "
            style = self.header.marked if row == cursor[0] and label else style
        room = max(width - grid.gutter, 0)
        if hidden:
            cells = list(Strip(cells, across).crop_extend(hidden, hidden + room, self.page))
        elif across != room:
            cells = self._fitted(cells, across, room)
        fitted = fit_label(label, grid.gutter - 1, "right") + pointer * min(grid.gutter, 1)
        strip = Strip([Segment(fitted, style), *cells], grid.gutter + room)
        return strip if width >= grid.gutter else strip.crop(0, width)

    def _fitted(self, cells: Line, across: int, room: int) -> Line:
        """Cells that lie across some columns, cut or filled up to the room; cut by Textual they take ten times that."""
        shown, last = list(cells), Segment("", self.page)
        while across > room:
            last = shown.pop()
            across -= last.cell_length
        return [*shown, Segment(set_cell_size(last.text, room - across), last.style)]

    def _cells(self, row: int, columns: range, cursor: Cell, shown: range | None) -> Line:
        """The cells of a row: the line of their numbers, of which so much is on screen, or (None) one without."""
        if columns != self._kept_columns:
            self._kept, self._kept_columns = {}, columns
        if row not in self._kept:
            levels, values, beyond = self._window(row, columns)
            text = self.table.text_line(levels, values)
            for at in beyond:
                text[at] = Segment(text[at].text[:-1] + BEYOND_GLYPHS[int(values[at] < 0)], text[at].style)
            for part in (part for rows, part in self.edited if row in rows):
                for at in (column - columns.start for column in columns if column in part):
                    text[at] = Segment(EDITED_GLYPH + text[at].text[1:], text[at].style)
            fill = [self.table.fills[level] for level in levels.tolist()] if self.header.grid.cell_height > 1 else []
            self._kept[row] = text, fill, levels
        text, fill, levels = self._kept[row]
        line = fill if shown is None else without_cut(text, shown, self.header.grid.cell_width)
        if row != cursor[0] or cursor[1] not in columns:
            return line
        at = cursor[1] - columns.start
        left, right, bracket, inside = self.table.under_cursor(int(levels[at]))
        marked = Segment(left, bracket), Segment(line[at].text[1:-1], inside), Segment(right, bracket)
        return [*line[:at], *marked, *line[at + 1 :]]

    def _bars(self, row: int, columns: range, cursor: Cell, line: int) -> Line:
        """One of the lines of a row of bars, which stand on its last line and do not touch the row above."""
        levels, values, _ = self._window(row, columns)
        grid = self.header.grid
        full, below = 8 * grid.cell_height - 1, 8 * (grid.cell_height - 1 - line)
        seen = np.where(values >= 0.01, values, 0.0)  # less is no bar
        heights = np.clip(np.ceil(seen * full) - below, 0, 8).astype(int)
        at = cursor[1] - columns.start if row == cursor[0] else -1
        return self.table.bars(levels, heights, at, is_text=line == grid.text_line)

    def _window(self, row: int, columns: range) -> tuple[Levels, Values, Sequence[int]]:
        """Levels and values of cells of a row, and which lie beyond the scale; those outside the tile are missing."""
        block = self._block
        if block is None or row not in block.rows or columns != block.columns:
            # many rows at once, which takes as long as one
            block = self._block = self._make_block(range(row, row + 32), columns)
        at = row - block.rows.start
        return block.levels[at], block.values[at], block.beyond.get(at, ())

    def _make_block(self, rows: range, columns: range) -> Block:
        tile, (height, width) = self.tile, self.tile.values.shape
        lines = range(max(rows.start, tile.row), min(rows.stop, tile.row + height))
        inside = range(max(columns.start, tile.column), min(columns.stop, tile.column + width))
        levels = np.full((len(rows), len(columns)), self.table.missing, dtype=np.intp)
        values, beyond = np.zeros(levels.shape, tile.values.dtype), dict[int, list[int]]()
        if lines and inside:
            known = tile.values[lines[0] - tile.row :, inside[0] - tile.column :][: len(lines), : len(inside)]
            top, left = lines[0] - rows.start, inside[0] - columns.start
            place = slice(top, top + len(lines)), slice(left, left + len(inside))
            levels[place], values[place] = self.table.palette.levels(known, self.scale), known
            for at, column in np.argwhere(self.scale.beyond(known)).tolist():
                beyond.setdefault(at + top, []).append(column + left)
        return Block(rows, columns, levels, values, beyond)


def without_cut(line: Line, shown: range, width: int) -> Line:
    """Cells of one width; a number that an edge cuts is left out, as what is left of it would be another number."""
    if not line or width < SMALLEST_NUMBER_CELL or (not shown.start and shown.stop >= len(line) * width):
        return line
    whole = list(line)
    for at in {0, len(line) - 1}:
        text, style = line[at].text, line[at].style
        left, right = max(shown.start - at * width, 0), max(shown.stop - at * width, 0)
        if text[:left].strip() or text[right:].strip():
            whole[at] = Segment(" " * width, style)
    return whole


@dataclass(frozen=True)
class Header:
    """The line of column labels, the one under the cursor highlighted."""

    label: Callable[[int], str]
    grid: Grid
    plain: Style
    marked: Style

    def segments(self, columns: range, cursor: int, shown: range) -> list[Segment]:
        """The labels of the columns.

        Args:
            columns: The columns that are at least partly on screen.
            cursor: The column to highlight.
            shown: What is on screen, counted from the left edge of the first column.
        """
        width = self.grid.cell_width - 1
        if width + 1 < SMALLEST_NUMBER_CELL:
            return self._ticks(columns, cursor, shown)
        segments = [
            Segment(
                fit_label(self.label(column), width, "center") + " ", self.plain if column != cursor else self.marked
            )
            for column in columns
        ]
        if segments and segments[-1].text.strip().isdecimal():
            segments = without_cut(segments, shown, self.grid.cell_width)
        if cursor not in columns:
            return segments
        # the label under the cursor in full, instead of those beside it, where its own column cuts it
        cell, text = self.grid.cell_width, visible(self.label(cursor))
        end = min(shown.stop, len(columns) * cell)
        width = min(cells(text), 24, end - shown.start - 2)
        if cells(text) < cell or width < cell:
            return segments
        middle = (cursor - columns.start) * cell + cell // 2
        start = max(min(middle - width // 2, end - width - 1), shown.start + 1)
        first, last = (start - 1) // cell, -(-(start + width + 1) // cell)
        over = " " * (start - first * cell) + fit_label(text, width)
        return [*segments[:first], Segment(set_cell_size(over, (last - first) * cell), self.marked), *segments[last:]]

    def _ticks(self, columns: range, cursor: int, shown: range) -> list[Segment]:
        """The label under the cursor, and one every so many columns, where it does not touch another."""
        cell, texts = self.grid.cell_width, dict[int, str]()
        for column in columns:
            label = self.label(column)
            texts[column] = fit_label(label, min(cells(label), 8))
        longest = max(map(cells, texts.values()), default=1)
        step = next(step for step in _STEPS if step * cell >= longest + 2 or step == _STEPS[-1])
        placed: list[tuple[int, int, int]] = []
        for column in (*({cursor} & texts.keys()), *(column for column in columns if column % step == 0)):
            width = cells(texts[column])
            start = max(min((column - columns.start) * cell, shown.stop - width), 0)
            if start >= shown.start and all(start + width < first or last < start for first, last, _ in placed):
                placed.append((start, start + width, column))
        segments, x = list[Segment](), 0
        for start, end, column in sorted(placed):
            style = self.marked if column == cursor else self.plain
            segments += [Segment(" " * (start - x), self.plain), Segment(texts[column], style)]
            x = end
        return [*segments, Segment(" " * max(len(columns) * cell - x, 0), self.plain)]


class CellTable:
    """Cells of one width as segments: the palette's levels, then masked, then not yet computed."""

    def __init__(
        self,
        palette: Palette,
        width: int,
        number: NumberFormat | None,
        *,
        masked: Style,
        missing: Style,
        cursor: Style,
        marks: tuple[str, str] | None = None,
        bar: Style | None = None,
    ) -> None:
        self.palette, self._width, self._number, self._cursor = palette, width, number, cursor
        self._bar = bar or cursor
        self.missing = palette.masked + 1
        self._styles = (*palette.styles, masked, missing)
        fills = [(glyph * width)[:width] for glyph in palette.glyphs]
        self.fills = list(map(Segment, [*fills, " " * width, " " * width], self._styles))
        signs = [MASKED_GLYPH.center(width), MISSING_GLYPH.center(width)]
        self._plain = list(map(Segment, [*fills, *signs], self._styles))
        self._brackets = marks or (("▌", "▐") if palette.has_color and number else ("[", "]"))
        self.under_cursor = lru_cache(self._under_cursor)
        self._column = number.column if number else 0
        self._cell = lru_cache(1 << 12)(self._make_cell)  # many are on the screen more than once

    def text_line(self, levels: Levels, values: Values) -> list[Segment]:
        """The line of cells that says something: numbers where they fit, signs for masked and missing cells."""
        if self._number is None:
            return [self._plain[level] for level in levels.tolist()]
        return list(map(self._cell, levels.tolist(), self._number.row(values.tolist())))

    def bars(self, levels: Levels, heights: Levels, cursor: int, *, is_text: bool) -> list[Segment]:
        """Bars, so many eighths of a line high, with a gap between two where there is room; that at the cursor marked.

        On the line that says something, masked and missing cells have their signs.
        """
        gap = " " * (self._width > NARROW)
        bars = [BAR_HEIGHTS[height] * (self._width - len(gap)) + gap for height in range(len(BAR_HEIGHTS))]
        signs = self._plain if is_text else self.fills
        bar, marked = self._bar, self._bar + Style(color=self._cursor.color, bold=True)
        return [
            Segment(bars[height], marked if at == cursor else bar) if level < self.palette.masked else signs[level]
            for at, (level, height) in enumerate(zip(levels.tolist(), heights.tolist(), strict=True))
        ]

    def _make_cell(self, level: int, number: str) -> Segment:
        if level >= self.palette.masked:
            return self._plain[level]
        if len(number) > self._column:
            return Segment(number.center(self._width), self._styles[level])
        before = " " * ((self._width - self._column) // 2)
        return Segment((before + number.rjust(self._column)).ljust(self._width), self._styles[level])

    def _under_cursor(self, level: int) -> tuple[str, str, Style, Style]:
        """The brackets that mark a cell, their style, and that of what is inside."""
        cell, cursor = self._styles[level], self._cursor
        if cell.bgcolor is None or cursor.color is None or not self.palette.has_color:
            return *self._brackets, *(cell + Style(bold=True, reverse=True),) * 2
        if self._number is None:
            ink = readable((_BLACK, _WHITE), cursor.color)
            return *self._brackets, *(Style(color=ink, bgcolor=cursor.color, bold=True),) * 2
        bracket = readable((cursor.color, _WHITE, _BLACK), cell.bgcolor, 2.5)  # it is larger than a letter
        inside = readable((_WHITE, _BLACK), cell.bgcolor)
        return *self._brackets, cell + Style(color=bracket, bold=True), cell + Style(color=inside, bold=True)


# Where the cells lie


NARROW = 2
WIDTHS = (NARROW, 6, 9, 12)
"""Columns of a cell without a number, and of others that can be chosen."""


def choose_grid(
    shape: Cell, size: Size, *, label_width: int, number_width: int, cell_width: int | None, always: bool = False
) -> Grid:
    """The grid for a matrix on a screen.

    Args:
        shape: Rows × columns of the matrix.
        size: Columns × lines of the widget; a scroll bar takes one.
        label_width: What the row labels would like.
        number_width: The narrowest cell in which a number is readable.
        cell_width: A width that the user wants, or None to choose: numbers if every column fits, else colours alone.
        always: Numbers whether every column fits or not.
    """
    rows, columns = shape
    gutter = min(label_width + 1, 16, size.width // 4)
    if gutter < min(4, label_width + 1):
        gutter = 0
    header = int(size.height >= 3)
    tall = rows + header > size.height
    even = (size.width - gutter - tall) // max(columns, 1)
    automatic = number_width if always else min(max(even, NARROW), 2 * NARROW)
    if even >= number_width:
        automatic = min(even, max(number_width, 10))
    width = cell_width or automatic
    wide = gutter + columns * width > size.width - tall
    per_line = NARROW if width < SMALLEST_NUMBER_CELL else 3
    height = min((size.height - header - wide) // max(rows, 1), 3, width // per_line)
    slack = (size.width - tall - gutter) % width if wide else 0
    return Grid(rows, columns, width, max(height, 1), gutter, header, slack)
