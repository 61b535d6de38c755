"""The positional encoding by itself: its values, its parts, and what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.analysis.positions import by_distance, columns_of, encoding, facts
from tui_transformer.errors import UsageError
from tui_transformer.model import Model


def test_every_cell_is_the_sine_or_cosine_of_the_paper() -> None:
    table = encoding(6, 9)
    for position in range(9):
        for column in range(6):
            angle = position / 10000 ** (2 * (column // 2) / 6)
            assert table[position, column] == pytest.approx(math.cos(angle) if column % 2 else math.sin(angle))


def test_it_is_what_a_model_adds() -> None:
    trace = Model.load("encoder", dtype="float64").trace(ids=[1, 2, 3])
    np.testing.assert_array_equal(trace["embedding.positions"], encoding(8, 3))


def test_sines_are_even_and_cosines_odd() -> None:
    assert columns_of(6, "sin") == (0, 2, 4)
    assert columns_of(6, "cos") == (1, 3, 5)
    assert columns_of(6, "all", (4, 1)) == (4, 1)
    assert columns_of(6, "cos", (4, 1)) == (1,)
    for part, chosen, says in (("sin", (1,), "none of the dimensions is a sin"), ("all", (6,), "no dimension 6")):
        with pytest.raises(UsageError, match=says):
            columns_of(6, part, chosen)


def test_likeness_depends_on_the_distance_alone() -> None:
    table = encoding(16, 40)
    for distance, dot, cosine in by_distance(16, 12):
        for position in (0, 3, 27):
            assert table[position] @ table[position + distance] == pytest.approx(dot)
            assert cosine == pytest.approx(dot / 8)
    with pytest.raises(UsageError, match="d_model 7 is odd"):
        by_distance(7, 4)


def test_facts_are_measured() -> None:
    facts_of_table, table = facts(16, 30), encoding(16, 30)
    assert (facts_of_table.lowest, facts_of_table.highest) == (table.min(), table.max())
    assert -1 <= facts_of_table.lowest < facts_of_table.highest <= 1
    distance, first, second = facts_of_table.nearest
    assert distance == pytest.approx(np.linalg.norm(table[first] - table[second]))
    others = [np.linalg.norm(table[a] - table[b]) for a in range(30) for b in range(a)]
    assert distance == pytest.approx(min(others))
    apart, (a, b), (c, d) = facts_of_table.sums
    assert apart == pytest.approx(np.linalg.norm(table[a] + table[b] - table[c] - table[d]))
    assert apart > 0.01
    assert facts_of_table.longer == 0.0


def test_one_position_has_no_other_beside_it() -> None:
    assert facts(4, 1).nearest[0] == math.inf


@pytest.mark.parametrize(("width", "count"), [(0, 3), (4, 0), (4, 1 << 21)])
def test_sizes_that_cannot_be_are_refused(width: int, count: int) -> None:
    with pytest.raises(UsageError):
        encoding(width, count)
