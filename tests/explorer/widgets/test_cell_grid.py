from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from rich.style import Style
from textual.geometry import Offset, Size
from textual.strip import Strip

from tui_transformer.explorer.widgets.cursor import Grid
from tui_transformer.explorer.widgets.matrix_drawing import NARROW, CellTable, Drawing, Header, choose_grid
from tui_transformer.explorer.widgets.palette import Surface, palette
from tui_transformer.views.numbers import NumberFormat
from tui_transformer.views.view import Scale, Tile


def grid_of(rows: int, columns: int, width: int, height: int, cell_width: int | None = None) -> Grid:
    return choose_grid((rows, columns), Size(width, height), label_width=6, number_width=5, cell_width=cell_width)


def test_cells_take_the_room_that_there_is_and_leave_numbers_out_where_there_is_none() -> None:
    small, without_numbers = grid_of(8, 8, 120, 30), grid_of(6, 18, 80, 15)
    assert (small.cell_width, small.cell_height) == (10, 3)
    assert (without_numbers.cell_width, without_numbers.cell_height) == (4, 2)
    assert grid_of(11, 24, 80, 15).cell_width == 3
    assert grid_of(8, 128, 160, 40).cell_width == NARROW
    assert grid_of(8, 128, 160, 40, cell_width=9).cell_width == 9, "as wanted"


@pytest.mark.parametrize("shape", [(1, 1), (10, 10), (8, 128), (4096, 4096)])
def test_every_cell_can_be_scrolled_into_view(shape: tuple[int, int]) -> None:
    for size in [(1, 1), (2, 2), (5, 3), (12, 4), (80, 24), (200, 60)]:
        grid = grid_of(*shape, *size)
        for cell in ((0, 0), (shape[0] - 1, shape[1] - 1), (shape[0] // 2, shape[1] // 2)):
            scroll = grid.scroll_to_show(cell, Offset(0, 0), Size(*size))
            assert all(at in seen for at, seen in zip(cell, grid.visible(scroll, Size(*size)), strict=True)), size
            assert grid.cell_at(grid.cell_region(cell, scroll).offset, scroll) == cell, size


def test_scrolling_right_starts_with_a_whole_cell() -> None:
    grid = grid_of(3, 100, 50, 10, cell_width=9)
    assert grid.scroll_to_show((0, 50), Offset(0, 0), Size(50, 10)).x % 9 == 0


def test_labels_are_no_cell() -> None:
    grid = grid_of(8, 8, 80, 24)
    assert grid.cell_at(Offset(grid.gutter, 0), Offset(0, 0)) is None
    assert grid.cell_at(Offset(0, 3), Offset(0, 0)) is None


# Lines of cells

PLAIN, PAGE, MISSING = Style(), Style(bgcolor="#101010"), Style(bgcolor="#202020")
COLORS = palette("sequential", Surface("truecolor", dark=True), PLAIN)


def drawing(
    values: Sequence[Sequence[float]], row: int = 0, column: int = 0, width: int = 7, height: int = 1
) -> Drawing:
    """A matrix of 200 × 20 without labels, of which some values are known; a number has four columns."""
    header = Header(str, Grid(200, 20, width, height, gutter=0, header=0), PLAIN, PLAIN)
    table = CellTable(COLORS, width, NumberFormat(5, 4, 2), masked=PLAIN, missing=MISSING, cursor=PLAIN)
    return Drawing(header, str, table, Tile(row, column, np.array(values)), Scale("sequential", 0.0, 1.0), PAGE)


def line(drawn: Drawing, row: int = 0, *, x: int = 0, width: int) -> Strip:
    return drawn.line(0, Offset(x, row), width, (-1, -1))


def test_numbers_are_in_line_at_the_right() -> None:
    drawn = drawing([[0.5, 0.0, 1.0, -1.0, 10.0]])
    texts = [segment.text for segment in line(drawn, width=35) if segment.text]
    assert texts == ["  .50  ", "    0  ", " 1.00  ", " −1.00 ", " 10.00 "]


def test_a_line_is_cut_or_filled_to_its_width_however_often_it_is_drawn() -> None:
    drawn = drawing([[0.25] * 20])
    for _ in range(2):
        for width in (3, 5, 7, 9, 14, 140, 150):
            strip = line(drawn, width=width)
            whole = "  .25  " * min((width + 2) // 7, 20)
            assert strip.text == whole.ljust(width)[:width]
            behind = [segment.text for segment in strip if segment.style == PAGE and segment.text]
            assert behind == [" " * 10] * (width > 140)
    drawn = drawing([[0.25] * 20], height=2)
    for width in (9, 14, 8, 12, 140, 139):
        below = drawn.line(1, Offset(0, 0), width, (-1, -1))
        assert below.cell_length == sum(segment.cell_length for segment in below if segment.style != PAGE) == width


def test_a_number_that_an_edge_cuts_is_left_out() -> None:
    drawn = drawing([[-1.75] * 4])
    assert line(drawn, width=14).text == " −1.75  −1.75 "
    for x, width, says in ((0, 11, " −1.75     "), (1, 13, "−1.75  −1.75 "), (2, 12, "      −1.75 "), (9, 4, "    ")):
        assert line(drawn, x=x, width=width).text == says


def test_every_row_has_its_own_cells_in_whatever_order_they_are_drawn() -> None:
    drawn = drawing([[row / 100] * 4 for row in range(90)], row=10, column=5, width=5)
    colors = [[segment.style for segment in line(drawn, row, x=25, width=5)] for row in range(10, 100)]
    for row in (70, 20, 99, 10, 45, 44):
        strip = line(drawn, row, x=25, width=5)
        assert [segment.style for segment in strip] == colors[row - 10]
        assert float(strip.text) == (row - 10) / 100
    # nothing is known around them
    for row, x in ((9, 25), (100, 25), (50, 0), (50, 45), (50, 60)):
        assert line(drawn, row, x=x, width=15).text == "  ·  " * 3
    assert line(drawn, 50, x=20, width=30).text == "  ·  " + " .40 " * 4 + "  ·  "
