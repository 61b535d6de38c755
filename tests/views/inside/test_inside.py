"""The inside of every operation: its arithmetic gives the cell."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from op_cases import CASES

from tui_transformer.engine import ops
from tui_transformer.engine.explanation import Explanation
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.views.inside import INSIDES, drawn, inside_of
from tui_transformer.views.inside.cell import Cell, written
from tui_transformer.views.inside.parts import Bars, Curve, Equation, Inside, Note, Product, Turn, Weighted
from tui_transformer.views.step_view import Labels

ITEM = 0
SESSION = open_session(ModelOptions(model="question"), None, None)


def cells(name: str) -> list[Inside]:
    """The inside of some cells of an operation with random inputs: the first, the last, some between."""
    case = CASES[name](np.random.default_rng(7))
    sources = tuple(given.source(f"in.{i}", ITEM) for i, given in enumerate(case.inputs))
    own = case.op.axes(*case.axes)
    places = np.ndindex(case.shape)
    chosen = [index for number, index in enumerate(places) if number % 5 == 0]
    insides = []
    for index in chosen:
        working = case.op.explain(index, *sources)
        explanation = Explanation("step", index, case.op.formula, working.items, working.result, working.result)
        insides.append(drawn(Cell(case.op, index, explanation, sources, tuple(case.axes), own, Labels())))
    return insides


def of_kind(inside: Inside, kind: type) -> list:
    return [part for part in inside.parts if isinstance(part, kind)]


def test_every_operation_has_a_drawing_and_is_tried():
    named = {each for each in vars(ops).values() if isinstance(each, type)} - {ops.Op}
    assert set(INSIDES) == named
    tried = {type(CASES[name](np.random.default_rng(0)).op) for name in CASES}
    assert set(INSIDES) <= tried


@pytest.mark.parametrize("name", CASES)
def test_the_last_line_gives_the_cell_and_what_is_drawn_adds_up(name):
    factor = 1.2 if name == "rotate and scale" else 1.0
    for inside in cells(name):
        last = inside.parts[-1]
        assert isinstance(last, Equation)
        assert last.text.endswith(written(inside.explanation.recomputed)), last.text
        assert of_kind(inside, Note)
        for part in inside.parts:
            if isinstance(part, Product):
                terms = sum(part.row.values[k] * part.column.values[k] for k in part.shown)
                assert terms + part.rest == pytest.approx(part.total)
            if isinstance(part, Weighted):
                assert part.shares @ part.rows[:, part.marked] + part.rest == pytest.approx(
                    inside.explanation.recomputed
                )
            if isinstance(part, Curve):
                x, y = part.point
                if np.isfinite(x):
                    assert np.interp(x, part.x, part.y) == pytest.approx(y, abs=0.05)
            if isinstance(part, Turn):
                assert math.hypot(*part.before) * factor == pytest.approx(math.hypot(*part.after))


NUMBER = r"[−-]?[0-9.]+(?:e[−-]?[0-9]+)?"


@pytest.mark.parametrize("name", ["add", "gate", "scale", "softmax", "softmax with a sink", "layer norm", "RMS norm"])
def test_the_arithmetic_can_be_checked_with_a_calculator(name):
    for inside in cells(name):
        for equation in of_kind(inside, Equation):
            first, *others = (_value(part) for part in equation.text.split(" = "))
            for other in others:
                assert first == pytest.approx(other, rel=2e-3, abs=2e-5), equation.text


def _value(text: str) -> float:
    """The value of an expression as it is written on the screen."""
    if text in ("weight", "−∞"):
        return 0.0
    plain = text.replace("−", "-").replace("·", "*").replace("÷", "/").replace("^", "**").replace("√", "sqrt")
    plain = re.sub(r"\be\*\*", "E**", plain).replace("∞", "INF")
    return float(eval(plain, {"sqrt": math.sqrt, "E": math.e, "INF": math.inf}))  # noqa: S307 - an expression of our own


def test_the_softmax_and_the_scores_are_spelled_out():
    # the division of the softmax
    inside = inside_of(SESSION.trace, "encoder.0.self_attention.weights", (2, 0, 8), SESSION.labels)
    assert inside.cell == "“where” → “?” in head 2"
    last = inside.parts[-1]
    assert isinstance(last, Equation)
    assert re.fullmatch(rf"e\^\({NUMBER} − {NUMBER}\) ÷ {NUMBER} = {NUMBER} ÷ {NUMBER} = 0.98\d+", last.text)
    (bars,) = of_kind(inside, Bars)
    assert [bar.label for bar in bars.bars if bar.marked] == ["? @8"]
    assert sum(bar.values[-1] for bar in bars.bars) == pytest.approx(1)
    # the row of Q meets the column of K
    inside = inside_of(SESSION.trace, "encoder.0.self_attention.scores", (2, 0, 8), SESSION.labels)
    (product,) = of_kind(inside, Product)
    assert product.row.name == "Q, row of “where”"
    assert product.column.name == "Kᵀ, column of “?”"
    query = SESSION.trace["encoder.0.self_attention.query"][2, 0]
    assert product.row.values == pytest.approx(query)


def test_every_step_of_a_model_can_be_looked_into():
    program = SESSION.trace.program
    for name in (*program.by_name, *program.weights):
        inside = inside_of(SESSION.trace, name, tuple(size - 1 for size in program.shape(name)), SESSION.labels)
        assert inside.parts, name
        assert inside.explanation.recomputed == pytest.approx(inside.explanation.stored, abs=1e-4), name
