from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.report.differences import compare, compare_blocks

INF, NAN = math.inf, math.nan


def _compare(first: list[float], second: list[float], tolerance: float = 1e-5) -> tuple[bool, float]:
    difference = compare("x", np.array(first), np.array(second), tolerance)
    return difference.beyond, difference.largest


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], (False, 0.0)),
        ([-INF, 2.0], [-INF, 2.0], (False, 0.0)),
        ([NAN, 2.0], [NAN, 2.0], (False, 0.0)),
        ([NAN, 0.0], [NAN, 1e-6], (False, 1e-6)),
        ([NAN, 2.0], [0.0, 2.0], (True, INF)),
        ([-INF, 2.0], [INF, 2.0], (True, INF)),
        ([-INF, 2.0], [-1e30, 2.0], (True, INF)),
        ([0.0], [1e-6], (False, 1e-6)),
        ([0.0], [2e-5], (True, 2e-5)),
        ([1e6], [1e6 + 1], (False, 1.0)),
        ([1e6], [1e6 + 20], (True, 20.0)),
    ],
)
def test_values_are_compared_with_infinities_and_nan(
    first: list[float], second: list[float], expected: tuple[bool, float]
) -> None:
    assert _compare(first, second) == expected
    assert _compare(second, first) == expected


def test_no_tolerance_still_takes_equal_values_as_the_same() -> None:
    assert _compare([1.0, -INF], [1.0, -INF], 0.0) == (False, 0.0)
    assert _compare([1.0], [1.0 + 1e-15], 0.0)[0]


def test_the_cell_with_the_largest_difference_is_found() -> None:
    first = np.zeros((2, 3))
    second = first.copy()
    second[1, 2] = 5.0
    difference = compare("x", first, second, 1e-5)
    assert (difference.index, difference.values, difference.relative) == ((1, 2), (0.0, 5.0), 1.0)


def test_a_batch_axis_of_one_is_left_out() -> None:
    assert not compare("x", np.ones((1, 2, 3)), np.ones((2, 3)), 1e-5).beyond
    assert compare("x", np.ones((2, 2, 3)), np.ones((2, 3)), 1e-5).beyond


def test_float32_is_compared_with_float64() -> None:
    exact = np.array([0.1])
    difference = compare("x", exact.astype(np.float32), exact, 1e-5)
    assert 0 < difference.largest < 1e-8
    assert not difference.beyond


def test_blocks_are_compared_as_the_whole() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 3, 5, 4))
    first[1, 2, 3] = second[1, 2, 3] = -INF
    regions = [(range(i, i + 1), range(j, min(j + 2, 5)), range(4)) for i in range(3) for j in range(0, 5, 2)]
    parts = [tuple(slice(axis.start, axis.stop) for axis in region) for region in regions]
    blocks = [(region, first[part], second[part]) for region, part in zip(regions, parts, strict=True)]
    in_blocks, whole = compare_blocks("x", (3, 5, 4), blocks, 1e-5), compare("x", first, second, 1e-5)
    assert in_blocks == whole
    assert compare_blocks("x", (3, 5, 4), [(r, a, a) for r, a, _ in blocks], 0.0).largest == 0.0
