"""A constant factor is said in terms of the model's numbers."""

from __future__ import annotations

import math

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


def test_a_factor_is_said_as_what_it_is() -> None:
    assert {factor: factor_of_sizes(factor, SIZES) for factor in SAID} == SAID
    for factor in (math.sqrt(32) * 1.00001, 5.6569, 5.65685):  # digits that were printed are enough
        assert factor_of_sizes(factor, SIZES) == "5.65685 = √32 = √d_model"
    assert factor_of_sizes(5.66, SIZES) == "5.66"
    assert factor_of_sizes(8.0, {"d_k": 8, "number of heads": 8}) == "8 = d_k = number of heads"


def test_simple_factors_are_said_in_words_and_sizes_have_their_names() -> None:
    assert describe_factor(-1.0, SIZES) == "has the opposite sign"
    assert describe_factor(2.00001, SIZES) == "is twice the right one"
    assert describe_factor(0.5, SIZES) == "is half the right one"
    assert describe_factor(8.0, SIZES) == "is 8 = d_k times the right one"
    assert sizes_of(Model.load("question").program(9)) == SIZES | {"size of the vocabulary": 123}
