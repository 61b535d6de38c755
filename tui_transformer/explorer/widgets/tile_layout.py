"""Where tiles lie: how large they are, how many fit, and which are on screen."""

from __future__ import annotations

from dataclasses import dataclass

from textual.geometry import Region, Size

SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Columns of a picture that can be chosen; it has half as many lines."""

SMALLEST, READABLE = 11, 9
"""Columns of a picture that are chosen where not all tiles fit: on a screen of `ROOMY` columns, and on a narrow one."""

ROOMY = 100


@dataclass(frozen=True)
class TileLayout:
    """Tiles of `side` columns, with a column in front of each, right of the gutter.

    Attributes:
        count: How many tiles there are.
        columns: Tiles a row.
        side: Columns of a tile.
        gutter: Columns left of the first tile's mark.
        across: Tiles that fit side by side.
        down: Tiles that fit below each other.
    """

    count: int
    columns: int
    side: int
    gutter: int
    across: int
    down: int

    @property
    def rows(self) -> int:
        """Rows of tiles."""
        return -(-self.count // self.columns)

    @property
    def height(self) -> int:
        """Lines of a tile: its label, and two rows of its picture a line."""
        return self.side // 2 + 1

    @property
    def width(self) -> int:
        """Columns that a row of tiles takes with its gutter."""
        return self.gutter + self.columns * (self.side + 1)

    def region(self, row: int, column: int) -> Region:
        """Where the tile at a place of the screen lies, with its mark."""
        return Region(self.gutter + column * (self.side + 1), row * self.height, self.side + 1, self.height)


def choose_layout(count: int, columns: int | None, size: Size, gutter: int, side: int | None) -> TileLayout:
    """The layout for a screen.

    Args:
        count: How many tiles there are.
        columns: Tiles a row; None for as many as fit.
        size: Columns × lines of the screen.
        gutter: Columns that the row labels take.
        side: A size that the user wants, or None for the largest with which all tiles fit, if they can.
    """
    smallest = SMALLEST if size.width >= ROOMY else READABLE
    sides = range(SIZES[-1], smallest, -1) if side is None else ()
    layouts = (_layout(count, columns, size, gutter, each) for each in sides)
    fitting = (each for each in layouts if each.width <= size.width and each.rows * each.height <= size.height)
    return next(fitting, _layout(count, columns, size, gutter, side or smallest))


def _layout(count: int, columns: int | None, size: Size, gutter: int, side: int) -> TileLayout:
    across = max((size.width - gutter) // (side + 1), 1)
    return TileLayout(count, columns or across, side, gutter, across, max(size.height // (side // 2 + 1), 1))


def reach(first: int, wanted: int, room: int, count: int) -> int:
    """The nearest first row or column with which the wanted one is on screen."""
    return max(min(max(first, wanted - room + 1), wanted, count - room), 0)
