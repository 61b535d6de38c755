from __future__ import annotations

import math

import pytest

from tui_transformer.views.numbers import number_format, short_number, shortest_width
from tui_transformer.views.view import Scale

UNIT = Scale("sequential", 0.0, 1.0)
SIGNED = Scale("diverging", -4.0, 4.0)


def test_two_decimals_without_a_leading_zero() -> None:
    texts = map(number_format(SIGNED, 5, integer=False), (0.72, 0.004, 0.0, 1.0, -1.2345, -0.001))
    assert [*texts] == [".72", ".00", "0", "1.00", "−1.23", ".00"]


def test_decimals_give_way_to_the_width_which_exact_numbers_fill() -> None:
    assert number_format(SIGNED, 4, integer=False)(-1.27) == "−1.3"
    assert number_format(UNIT, 7, integer=False, exact=True)(0.123456) == ".12346"
    # small scales have exponents, and integers no decimals
    small = number_format(Scale("diverging", -0.0005, 0.0005), 5, integer=False)
    assert [*map(small, (0.00031, -0.00031, 3e-300, 0.0, math.inf))] == ["3e-4", "−3e-4", "0", "0", "inf"]
    whole = number_format(Scale("sequential", 0, 30522), 5, integer=True)
    assert [*map(whole, (2003, -0.3))] == ["2003", "0"]


def test_a_number_with_a_long_power_of_ten_is_not_0_unless_it_is_beside_the_others() -> None:
    for low in (-3e-12, 0.0):
        scale = Scale("diverging" if low else "sequential", low, 3e-12)
        write = number_format(scale, shortest_width(scale, integer=False), integer=False)
        assert [*map(write, (3e-12, low, 2e-14))] == ["3e-12", "−3e-12" if low else "0", "2e-14"]
        narrow = number_format(scale, 4, integer=False)
        assert [*map(narrow, (3e-12, -3e-12, 0.0, 1e-15))] == ["3e-…", "−3e…", "0", "0"]


@pytest.mark.parametrize("value", [12345.678, -98765.4, 1e12, -1e-30, 1e300])
def test_numbers_outside_the_scale_keep_to_the_width(value: float) -> None:
    for width in (3, 4, 7):
        assert len(number_format(SIGNED, width, integer=False)(value)) <= width


def test_numbers_outside_the_scale_have_the_digits_that_there_is_room_for() -> None:
    texts = map(number_format(SIGNED, 4, integer=False), (12.345, 123.4, 12345.678, -1e30))
    assert [*texts] == ["12.3", "123", "1e4", "−1e…"]


def test_every_number_of_a_scale_fits_the_shortest_width() -> None:
    for high in (4e-31, 0.0004, 0.05, 0.9, 1.0, 4.0, 12.5, 250.0):
        for low in (0.0, -high):
            scale = Scale("diverging" if low else "sequential", low, high)
            width = shortest_width(scale, integer=False)
            write = number_format(scale, width, integer=False)
            texts = [write(low + (high - low) * step / 50) for step in range(51)]
            assert max(map(len, texts)) <= width
            assert not any("…" in text for text in texts)


def test_short_numbers() -> None:
    numbers = (0, -0.0, 0.98765, -1234.5, 0.00001)
    assert [short_number(value) for value in numbers] == ["0", "0", "0.988", "−1.23e3", "1e-5"]
