"""Bars of lists: what they stand for does not depend on what else is in the list."""

from __future__ import annotations

import math

import pytest

from tui_transformer.views.numbers import BarScale

NATS = BarScale(1.0, "nat", signed=True)


@pytest.mark.parametrize(
    ("value", "bar"),
    [
        (0.0, "    │    "),
        (0.0001, "    │    "),
        (0.5, "    │━━  "),
        (-0.5, "  ━━│    "),
        (0.13, "    │╸   "),
        (-0.13, "   ╺│    "),
        (1.0, "    │━━━━"),
        (-1.0, "━━━━│    "),
        (1.01, "    │━━━▸"),
        (-math.inf, "◂━━━│    "),
        (math.nan, "    │    "),
    ],
)
def test_signed_bars_go_left_and_right_from_zero(value: float, bar: str) -> None:
    assert NATS.bar(value, 9) == bar


def test_a_small_share_is_no_full_bar_and_what_exceeds_the_scale_is_marked() -> None:
    shares = BarScale(1.0)
    bars = [shares.bar(share, 10) for share in (0.0001, 0.25, -0.25, 1.0, 1.3)]
    assert bars == ["", "━━╸", "━━╸", "━" * 10, "━" * 9 + "▸"]
    for share in (1.0, 1.3):
        assert [NATS.bar(share, width) for width in (0, 1, 2)] == ["│"] * 3
    assert [NATS.bar(share, 3) for share in (1.0, 1.3)] == [" │━", " │▸"]


def test_the_scale_says_what_a_full_bar_is() -> None:
    assert NATS.says == "full bar ±1 nat"
    assert [BarScale.holding(most).says for most in (0.0, 0.3, 1.0)] == ["full bar 1"] * 3
    assert [BarScale.holding(most, "nats").full for most in (1.1, 3.0, 7.0, 10.0, 37.0, math.inf)] == [
        2,
        5,
        10,
        10,
        50,
        1,
    ]
