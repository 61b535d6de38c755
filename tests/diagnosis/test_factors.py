"""A constant factor is said in terms of the model's numbers."""

from __future__ import annotations

import math

import pytest

from tui_transformer.diagnosis.diagnosis import describe_factor, factor_of_sizes, sizes_of
from tui_transformer.model import Model

SIZES = {"d_k": 8, "d_model": 32, "number of heads": 4, "d_ff": 128, "number of tokens": 9}

SAID = {
    math.sqrt(32): "5.65685 = √32 = √d_model",
    math.sqrt(8): "2.82843 = √8 = √d_k",
    8.0: "8 = d_k",
    32.0: "32 = d_model",
    4.0: "4 = number of heads",
    -math.sqrt(32): "−5.65685 = −√32 = −√d_model",
    1 / math.sqrt(8): "0.353553 = 1 ÷ √8 = 1 ÷ √d_k",
    1 / 8: "0.125 = 1 ÷ 8 = 1 ÷ d_k",
    3.0: "3 = √9 = √(number of tokens)",
    math.sqrt(8 / 9): "0.942809 = √8 ÷ √9 = √d_k ÷ √(number of tokens)",
    9 / 8: "1.125 = 9 ÷ 8 = number of tokens ÷ d_k",
    1 / math.log(2): "1.4427 = 1 ÷ ln 2",
    1.2345: "1.2345",
}


@pytest.mark.parametrize("factor", SAID)
def test_a_factor_is_said_as_what_it_is(factor: float) -> None:
    assert factor_of_sizes(factor, SIZES) == SAID[factor]


@pytest.mark.parametrize("factor", [math.sqrt(32) * 1.00001, 5.6569, 5.65685])
def test_digits_that_were_printed_are_enough(factor: float) -> None:
    assert factor_of_sizes(factor, SIZES) == "5.65685 = √32 = √d_model"


def test_what_is_not_near_enough_is_not_named() -> None:
    assert factor_of_sizes(5.66, SIZES) == "5.66"


def test_names_of_one_size_are_both_said() -> None:
    assert factor_of_sizes(8.0, {"d_k": 8, "number of heads": 8}) == "8 = d_k = number of heads"


def test_simple_factors_are_said_in_words() -> None:
    assert describe_factor(-1.0, SIZES) == "has the opposite sign"
    assert describe_factor(2.00001, SIZES) == "is twice the right one"
    assert describe_factor(0.5, SIZES) == "is half the right one"
    assert describe_factor(8.0, SIZES) == "is 8 = d_k times the right one"


def test_the_sizes_of_a_model_have_their_names() -> None:
    sizes = sizes_of(Model.load("question").program(9))
    assert sizes == {
        "d_k": 8,
        "d_model": 32,
        "number of heads": 4,
        "d_ff": 128,
        "size of the vocabulary": 123,
        "number of tokens": 9,
    }
