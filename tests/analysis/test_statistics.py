"""Statistics and histograms of arrays with known numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.analysis.statistics import MOST_BINS, histogram, statistics


def test_statistics_are_those_of_the_whole_population() -> None:
    numbers = statistics(np.array([[0.0, 3.0], [4.0, -3.0]], dtype=np.float32))
    assert (numbers.count, numbers.masked) == (4, 0)
    assert (numbers.mean, numbers.low, numbers.high) == (1.0, -3.0, 4.0)
    assert numbers.deviation == pytest.approx(math.sqrt(30 / 4))
    assert numbers.norm == pytest.approx(math.sqrt(34))
    assert numbers.zeros == 0.25


def test_masked_cells_are_counted_and_left_out() -> None:
    numbers = statistics(np.array([1.0, -math.inf, math.nan, 3.0, math.inf]))
    assert (numbers.count, numbers.masked, numbers.mean, numbers.low, numbers.high) == (2, 3, 2.0, 1.0, 3.0)


def test_statistics_of_nothing_are_not_numbers() -> None:
    numbers = statistics(np.full((2, 2), -np.inf))
    assert (numbers.count, numbers.masked) == (0, 4)
    assert all(
        map(math.isnan, (numbers.mean, numbers.deviation, numbers.low, numbers.high, numbers.norm, numbers.zeros))
    )


def test_sums_run_in_float64() -> None:
    values = np.full(1 << 20, 0.1, dtype=np.float32)
    assert statistics(values).mean == pytest.approx(float(np.float32(0.1)), rel=1e-12)
    assert statistics(np.array([3e38, 3e38], dtype=np.float32)).norm == pytest.approx(3e38 * math.sqrt(2), rel=1e-6)


def test_whole_numbers_have_statistics() -> None:
    numbers = statistics(np.array([1, 2, 3, 0]))
    assert (numbers.mean, numbers.zeros) == (1.5, 0.25)


def test_counts_and_edges_of_known_values() -> None:
    counts, edges = histogram(np.array([0.0, 1.0, 2.0, 3.0]))
    assert edges.tolist() == [0.0, 1.5, 3.0]
    assert counts.tolist() == [2, 2]


def test_a_value_on_an_inner_edge_lies_right_of_it() -> None:
    counts, edges = histogram(np.array([0.0, 1.0, 1.0, 2.0]))
    assert edges.tolist() == [0.0, 1.0, 2.0]
    assert counts.tolist() == [1, 3]


@pytest.mark.parametrize("size", [1, 2, 8, 64, 10_000])
def test_counts_agree_with_numpy_and_leave_no_value_out(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    values[::3] = -np.inf if size > 2 else values[::3]
    kept = values[np.isfinite(values)]
    counts, edges = histogram(values)
    assert counts.sum() == kept.size
    assert counts.tolist() == np.histogram(kept, bins=edges)[0].tolist()


@pytest.mark.parametrize(("size", "bins"), [(2, 2), (8, 3), (64, 8), (1_600, 40), (100_000, MOST_BINS)])
def test_small_arrays_have_few_bins(size: int, bins: int) -> None:
    assert len(histogram(np.arange(size))[0]) == bins


@pytest.mark.parametrize("value", [0.0, 1.0, -7.5, 1e300, 1e-300])
def test_equal_values_fill_one_bin_around_them(value: float) -> None:
    counts, (low, high) = histogram(np.full(9, value))
    assert counts.tolist() == [9]
    assert low < value < high


def test_nothing_to_count_is_one_empty_bin() -> None:
    counts, edges = histogram(np.full(3, -np.inf))
    assert (counts.tolist(), edges.tolist()) == ([0], [0.0, 1.0])


@pytest.mark.parametrize("values", [[1.0, np.nextafter(1.0, 2.0)] * 50, [-1.7e308, 1.7e308, 0.0]])
def test_edges_rise_for_very_near_and_very_far_values(values: list[float]) -> None:
    counts, edges = histogram(np.array(values))
    assert np.isfinite(edges).all()
    assert (edges[1:] > edges[:-1]).all()
    assert counts.sum() == len(values)
