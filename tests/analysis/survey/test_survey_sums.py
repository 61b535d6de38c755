"""Sums of a survey: exact, and the same however they are put together."""

from __future__ import annotations

import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

from tui_transformer.analysis.measures import Place
from tui_transformer.analysis.survey.sums import LARGEST, NONE, Counts, Examples, Moments, Source, Sums
from tui_transformer.analysis.survey.table import half_width, student

AWKWARD = [0.1, -0.3, 1e16 / 3 % 1e9, 1e-9, 7.0, -(2.0**30) / 3, 123456.789, 0.1]


def columns(values: list[float]) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


def test_mean_and_deviation_are_those_of_exact_arithmetic():
    moments, exact = Moments.of(columns(AWKWARD)), [Fraction(value) for value in AWKWARD]
    assert moments.mean(0) == float(statistics.mean(exact))
    assert moments.deviation(0) == pytest.approx(math.sqrt(statistics.variance(exact)), rel=1e-15)


def test_a_small_deviation_around_a_large_mean_is_not_lost():
    values = [1.0 + each * 2.0**-40 for each in range(5)]
    assert Moments.of(columns(values)).deviation(0) == pytest.approx(statistics.stdev(range(5)) * 2.0**-40, rel=1e-9)


def test_no_order_of_adding_changes_a_bit():
    parts = [Moments.of(columns([value])) for value in AWKWARD[:5]]
    means = {sum_of(order).mean(0) for order in itertools.permutations(parts)}
    assert means == {Moments.of(columns(AWKWARD[:5])).mean(0)}


def sum_of(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def test_what_is_no_number_is_not_counted():
    moments = Moments.of(columns([1.0, math.nan, math.inf, -math.inf, 2 * LARGEST, 3.0]))
    assert (int(moments.count[0]), moments.mean(0)) == (2, 2.0)
    assert math.isnan(Moments.of(columns([math.nan])).mean(0))
    assert math.isnan(Moments.of(columns([1.0])).deviation(0))


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [
        (1, 12.7062047364),
        (2, 4.30265272991),
        (3, 3.18244630528),
        (10, 2.22813885196),
        (399, 1.9659272959),
        (400, 1.9659122858),
    ],
)
def test_the_interval_uses_student_t(freedom: int, expected: float):
    assert student(freedom) == pytest.approx(expected, rel=1e-6)


def test_no_interval_of_one_text():
    assert math.isnan(half_width(math.nan, 1))
    assert half_width(2.0, 4) == pytest.approx(3.18244630528, rel=1e-6)


def candidates(values: list[float], texts: list[int], top: int = 3) -> Examples:
    return Examples.of(np.array([values]), np.array(texts), np.zeros((1, len(values)), np.int64), top)


def test_the_strongest_come_first_and_equal_ones_in_order_of_the_texts():
    best = candidates([1.0, 3.0, 3.0, 2.0], [9, 8, 4, 1])
    assert best.texts.tolist() == [[4, 8, 1]]
    assert best.values.tolist() == [[3.0, 3.0, 2.0]]


def test_examples_do_not_depend_on_how_texts_were_put_together():
    values, texts = [float(text * 7 % 4) for text in range(30)], list(range(30))
    parts = [candidates(values[i : i + 7], texts[i : i + 7]) for i in range(0, 30, 7)]
    whole = candidates(values, texts)
    for order in itertools.permutations(parts):
        assert sum_of(order).texts.tolist() == whole.texts.tolist()


def test_fewer_texts_than_examples_leave_places_empty():
    best = candidates([math.nan, 1.0], [0, 1])
    assert best.texts.tolist() == [[1, NONE, NONE]]


def sums(place: Place, value: float, text: int) -> Sums:
    examples = candidates([value], [text])
    return Sums(
        Counts(1, 5),
        ((place, 1),),
        Moments.of(columns([value])),
        examples,
        {text: Source("a.txt", text + 1, f"text {text}")},
    )


ONE, TWO, THREE = (Place("decoder self-attention", layer, "first") for layer in range(3))


def test_sums_with_different_measures_add_up_to_all_of_them():
    parts = [sums(ONE, 1.0, 0), sums(TWO, 2.0, 1), sums(THREE, 3.0, 2), sums(ONE, 5.0, 3)]
    expected = sum_of(parts).to_bytes()
    assert {sum_of(order).to_bytes() for order in itertools.permutations(parts)} != set()
    for order in itertools.permutations(parts):
        total = sum_of(order)
        assert [place.layer for place, _ in total.places] == [0, 1, 2]
        assert [total.moments.mean(unit) for unit in range(3)] == [3.0, 2.0, 3.0]
        assert total.examples.texts.tolist() == [[3, 0, NONE], [1, NONE, NONE], [2, NONE, NONE]]
        assert sorted(total.sources.items()) == sorted(sum_of(parts).sources.items())
    assert Sums.from_bytes(expected)[0].to_bytes() == expected


def test_grouping_changes_nothing():
    a, b, c = sums(ONE, 0.1, 0), sums(TWO, 0.2, 1), sums(ONE, 0.3, 2)
    assert ((a + b) + c).to_bytes() == (a + (b + c)).to_bytes()
    assert (Sums.nothing(3) + a).to_bytes() == a.to_bytes()


def test_texts_that_are_no_example_any_more_are_let_go():
    total = sum_of([sums(ONE, float(text), text) for text in range(10)])
    assert sorted(total.sources) == [7, 8, 9]


@pytest.mark.parametrize("data", [b"", b"PK", sums(ONE, 1.0, 0).to_bytes()[:-40]])
def test_a_broken_file_is_no_sums(data: bytes):
    with pytest.raises(ValueError, match="not the sums"):
        Sums.from_bytes(data)


def test_the_first_unknown_words_do_not_depend_on_how_counts_were_put_together():
    words = ["fox", "crow", "fox", "shell", "stone", "map", "sea", "crow", "ship"]
    parts = [Counts(1, 5, unknown=1, unknown_words=((text, 2, word),)) for text, word in enumerate(words)]
    for order in (parts, parts[::-1], parts[4:] + parts[:4]):
        total = sum_of(order)
        assert (total.texts, total.unknown) == (9, 9)
        assert [word for _, _, word in total.unknown_words] == ["fox", "crow", "shell", "stone", "map", "sea"]
    assert Sums.from_bytes(Sums.nothing(1).to_bytes())[0].counts == Counts()
