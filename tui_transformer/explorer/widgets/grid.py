"""Where the cells of a matrix lie on screen: sizes, scrolling, and which cell is where."""

from __future__ import annotations

from dataclasses import dataclass

from textual.geometry import Offset, Region, Size

from tui_transformer.views.numbers import SMALLEST_NUMBER_CELL

Cell = tuple[int, int]

NARROW = 2
WIDTHS = (NARROW, 6, 9, 12)

_WIDEST_AUTOMATIC = 10
_TALLEST = 3
_COLUMNS_PER_LINE = 3
_WIDEST_COLOR = 2 * NARROW
_WIDEST_GUTTER = 16
_NARROWEST_GUTTER = 4
_SMALLEST_HEIGHT_WITH_HEADER = 3


@dataclass(frozen=True)
class Grid:
    """Cells of `cell_width` columns × `cell_height` lines, right of the row labels and below the column labels.

    The labels stay while the cells scroll.
    """

    rows: int
    columns: int
    cell_width: int
    cell_height: int
    gutter: int
    header: int
    slack: int = 0

    @property
    def virtual_size(self) -> Size:
        """Size of the whole matrix with its labels, and `slack` so that the last scroll starts with a whole cell."""
        width = self.gutter + self.columns * self.cell_width + self.slack
        return Size(width, self.header + self.rows * self.cell_height)

    @property
    def text_line(self) -> int:
        """The line of a cell that holds its number."""
        return (self.cell_height - 1) // 2

    def visible_rows(self, scroll: Offset, height: int) -> range:
        """The rows that are at least partly on screen."""
        return _visible(scroll.y, height - self.header, self.cell_height, self.rows)

    def visible_columns(self, scroll: Offset, width: int) -> range:
        """The columns that are at least partly on screen."""
        return _visible(scroll.x, width - self.gutter, self.cell_width, self.columns)

    def cell_at(self, place: Offset, scroll: Offset) -> Cell | None:
        """The cell at a place of the widget, or None on labels and outside."""
        x, y = place.x - self.gutter, place.y - self.header
        row, column = (y + scroll.y) // self.cell_height, (x + scroll.x) // self.cell_width
        inside = x >= 0 and y >= 0 and row < self.rows and column < self.columns
        return (row, column) if inside else None

    def cell_region(self, cell: Cell, scroll: Offset) -> Region:
        """Where a cell is drawn."""
        x = self.gutter + cell[1] * self.cell_width - scroll.x
        y = self.header + cell[0] * self.cell_height - scroll.y
        return Region(x, y, self.cell_width, self.cell_height)

    def label_region(self, row: int, scroll: Offset) -> Region:
        """Where a row's label is drawn."""
        return Region(0, self.header + row * self.cell_height - scroll.y, self.gutter, self.cell_height)

    def scroll_to_show(self, cell: Cell, scroll: Offset, size: Size) -> Offset:
        """The smallest scroll from `scroll` with which the whole cell is on screen."""
        return Offset(
            _reach(scroll.x, cell[1] * self.cell_width, self.cell_width, size.width - self.gutter),
            _reach(scroll.y, cell[0] * self.cell_height, self.cell_height, size.height - self.header),
        )


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
    gutter = _gutter(label_width, size.width)
    header = int(size.height >= _SMALLEST_HEIGHT_WITH_HEADER)
    tall = rows + header > size.height
    width = cell_width or _automatic_width(size.width - gutter - tall, columns, number_width, always=always)
    wide = gutter + columns * width > size.width - tall
    per_line = NARROW if width < SMALLEST_NUMBER_CELL else _COLUMNS_PER_LINE
    height = min((size.height - header - wide) // max(rows, 1), _TALLEST, width // per_line)
    slack = (size.width - tall - gutter) % width if wide else 0
    return Grid(rows, columns, width, max(height, 1), gutter, header, slack)


def _automatic_width(room: int, columns: int, number_width: int, *, always: bool) -> int:
    even = room // max(columns, 1)
    if even >= number_width:
        return min(even, max(number_width, _WIDEST_AUTOMATIC))
    return number_width if always else min(max(even, NARROW), _WIDEST_COLOR)


def _gutter(label_width: int, width: int) -> int:
    gutter = min(label_width + 1, _WIDEST_GUTTER, width // 4)
    return gutter if gutter >= min(_NARROWEST_GUTTER, label_width + 1) else 0


def _visible(scroll: int, room: int, step: int, count: int) -> range:
    if room <= 0:
        return range(0)
    return range(min(scroll // step, count), min(-(-(scroll + room) // step), count))


def _reach(scroll: int, start: int, length: int, room: int) -> int:
    """The nearest scroll to a whole number of cells that shows start to start + length."""
    whole_cells = max(room // length, 1) * length
    if start < scroll:
        return start
    return scroll if start + length <= scroll + room else start + length - whole_cells
