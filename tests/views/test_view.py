"""Scales and tiles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.views.view import Axis, Scale, Tile, View


def grid() -> View:
    values = np.arange(12.0).reshape(3, 4)
    return View(
        name="grid",
        title="grid",
        rows=Axis("row", 3, str),
        columns=Axis("column", 4, str),
        kind="sequential",
        window=lambda rows, columns: values[rows.start : rows.stop, columns.start : columns.stop],
    )


def test_positions_on_a_scale_are_cut_at_its_ends() -> None:
    scale = Scale("diverging", -2.0, 2.0)
    values = np.array([-3.0, -2.0, 0.0, 1.0, 2.0, 9.0, -math.inf, math.inf])
    assert scale.position(values).tolist() == [0.0, 0.0, 0.5, 0.75, 1.0, 1.0, 0.0, 1.0]
    assert np.isnan(scale.position(np.array([math.nan]))).all()


def test_a_scale_of_one_value_divides_by_no_zero() -> None:
    assert Scale("sequential", 1.0, 1.0).position(np.array([1.0])).tolist() == [0.0]


def test_a_tile_is_cut_to_the_matrix() -> None:
    tile = grid().tile(range(-5, 2), range(2, 99))
    assert (tile.row, tile.column) == (0, 2)
    assert tile.values.tolist() == [[2.0, 3.0], [6.0, 7.0]]


def test_a_tile_outside_the_matrix_is_empty() -> None:
    assert grid().tile(range(7, 9), range(4)).values.size == 0


@pytest.mark.parametrize(
    ("rows", "columns", "inside"),
    [
        (range(1, 3), range(2, 4), True),
        (range(1, 2), range(3, 4), True),
        (range(3), range(2, 4), False),
        (range(1, 3), range(1, 4), False),
        (range(1, 4), range(2, 4), False),
        (range(1, 3), range(2, 5), False),
    ],
)
def test_a_tile_covers_what_it_holds(rows: range, columns: range, *, inside: bool) -> None:
    assert Tile(1, 2, np.zeros((2, 2))).covers(rows, columns) is inside


def test_the_shape_counts_rows_and_columns() -> None:
    assert grid().shape == (3, 4)


def test_a_tile_outside_the_matrix_has_no_cells() -> None:
    for rows, columns in ((range(7, 9), range(4)), (range(3), range(9, 11)), (range(-9, -3), range(8, 2))):
        tile = grid().tile(rows, columns)
        assert tile.values.size == 0
        assert 0 <= tile.row <= 3
        assert 0 <= tile.column <= 4
