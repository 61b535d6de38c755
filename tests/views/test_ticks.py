"""Marks of an axis: round, evenly spaced, with 0."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_transformer.views.charts import tick_texts, ticks

ENDS = st.floats(-1e12, 1e12, allow_nan=False)


MARKS = [
    (0.0, 1.0, 6, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    (-1.0, 1.0, 5, False, (-1.0, -0.5, 0.0, 0.5, 1.0)),
    (0.0, 3.0, 10, True, (0.0, 1.0, 2.0, 3.0)),
    (0.0, 0.9, 1, False, (0.0,)),
    (0.0, 4321.0, 5, True, (0.0, 1000.0, 2000.0, 3000.0, 4000.0)),
    (2.0, 2.0, 5, False, (2.0,)),
    (0.6, 0.9, 1, False, (0.8,)),
    (0.25, 0.5, 1, True, ()),
    (6.0, 9.0, 1, True, (8.0,)),
    (math.nan, 1.0, 5, False, ()),
    (0.0, math.inf, 5, False, ()),
]
TEXTS = {
    (0.0, 0.5, 1.0): ("0", "0.5", "1.0"),
    (-1e-5, 0.0, 1e-5): ("−1e-5", "0", "1e-5"),
    (0.0, 1000.0, 2000.0): ("0", "1,000", "2,000"),
    (0.0, 2e6): ("0", "2e6"),
    (): (),
}


def test_marks_and_their_texts():
    for low, high, most, whole, wanted in MARKS:
        assert ticks(low, high, most, whole=whole) == wanted
    assert {places: tick_texts(places) for places in TEXTS} == TEXTS


@given(ENDS, ENDS, st.integers(1, 40), st.booleans())
def test_marks_are_few_round_even_and_hold_zero(one, other, most, whole):
    low, high = sorted((one, other))
    marks = ticks(low, high, most, whole=whole)
    assert len(marks) <= most
    slack = 1e-6 * (high - low) + 1e-300
    assert all(low - slack <= place <= high + slack for place in marks)
    if whole:
        assert all(place == round(place) for place in marks)
    if len(marks) > 1:
        steps = [b - a for a, b in pairwise(marks)]
        assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-6)
        digits = f"{steps[0]:.6e}".partition("e")[0].rstrip("0").rstrip(".")
        assert digits in ("1", "2", "5")
        assert not low <= 0 <= high or 0.0 in marks
    texts = tick_texts(marks)
    assert len(set(texts)) == len(marks)
