from __future__ import annotations

import pytest
from textual.geometry import Offset, Size

from tui_transformer.explorer.widgets.cursor import Grid
from tui_transformer.explorer.widgets.matrix_drawing import NARROW, choose_grid


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
            assert cell[0] in grid.visible_rows(scroll, size[1]), (size, cell)
            assert cell[1] in grid.visible_columns(scroll, size[0]), (size, cell)
            assert grid.cell_at(grid.cell_region(cell, scroll).offset, scroll) == cell, size


def test_scrolling_right_starts_with_a_whole_cell() -> None:
    grid = grid_of(3, 100, 50, 10, cell_width=9)
    assert grid.scroll_to_show((0, 50), Offset(0, 0), Size(50, 10)).x % 9 == 0


def test_labels_are_no_cell() -> None:
    grid = grid_of(8, 8, 80, 24)
    assert grid.cell_at(Offset(grid.gutter, 0), Offset(0, 0)) is None
    assert grid.cell_at(Offset(0, 3), Offset(0, 0)) is None
