"""The equation that a working closes with: its left side, worked out, is the cell."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.op_cases import CASES
from tui_transformer.engine.explanation import Value, Working, equation_of
from tui_transformer.engine.number_format import spoken

WORDS = ("no key is visible", "the row of padding", "not chosen")
NAMES = {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "max": max, "exp": math.exp}


def worked_out(left: str) -> float:
    text = left.replace("−∞", "(-inf)").replace("−", "-").replace("·", "*").replace("÷", "/")
    text = re.sub(r"e\^\(", "exp(", text)
    return eval(text, {"__builtins__": {}, "inf": math.inf, **NAMES})  # noqa: S307 - of our own numbers


@pytest.mark.parametrize("name", CASES)
def test_the_left_side_is_the_cell(name):
    case = CASES[name](np.random.default_rng(5))
    sources = [given.source(str(i), 0) for i, given in enumerate(case.inputs)]
    for index in np.ndindex(*case.shape):
        working = case.op.explain(index, *sources)
        left, _, right = equation_of(working).rpartition(" = ")
        assert right == spoken(working.result)
        if left not in WORDS and " … " not in left:
            assert worked_out(left) == pytest.approx(working.result, rel=2e-3, abs=2e-3)


def test_a_long_sum_shows_its_first_term_and_its_last():
    case = CASES["scores"](np.random.default_rng(5))
    working = case.op.explain((0, 0, 0), *(given.source(str(i), 0) for i, given in enumerate(case.inputs)))
    assert len(working.items[0]) == 2
    assert equation_of(working).count("·") == 2


def test_items_that_do_not_give_the_result_make_no_equation():
    assert equation_of(Working((Value("a", 2.0), Value("+ b", 3.0)), 7.0)) == ""
    assert equation_of(Working((Value("a", 2.0), Value("b", 3.0)), 5.0)) == ""
    assert equation_of(Working((Value("a", 2.0), Value("+ b", -3.0), Value("· c", 4.0)), -4.0)) == "(2 + (−3)) · 4 = −4"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back(value):
    text = spoken(value, 17)
    assert "-" not in text.partition("e")[0]
    assert float(text.replace("−", "-")) == value


@pytest.mark.parametrize(
    ("value", "text"), [(1.1e-5, "1.1e-5"), (-0.0, "0"), (2e12, "2e12"), (-math.inf, "−∞"), (math.nan, "NaN")]
)
def test_numbers_as_they_are_written(value, text):
    assert spoken(value) == text
