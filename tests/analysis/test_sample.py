"""Which rows of a large matrix are read."""

from __future__ import annotations

from tui_transformer.analysis.statistics import row_sample


def test_all_rows_are_one_run_where_they_fit() -> None:
    assert row_sample(range(8), columns=10, cells=80) == (range(8),)


def test_too_many_rows_become_evenly_spaced_ones() -> None:
    assert row_sample(range(100), columns=10, cells=40) == (range(1), range(25, 26), range(50, 51), range(75, 76))


def test_gaps_between_rows_separate_runs() -> None:
    assert row_sample([0, 1, 4, 5, 6, 9], columns=1) == (range(2), range(4, 7), range(9, 10))


def test_a_row_wider_than_the_bound_is_still_read() -> None:
    assert row_sample(range(3), columns=1_000, cells=10) == (range(1),)
