"""Questions and their right answers, worked out from the values; and the screen that asks them."""

from __future__ import annotations

import numpy as np
import pytest
from driving import NARROW, SMALL, WIDE, exploring

from tui_transformer.engine.axis import shape_text
from tui_transformer.explorer.main.predict.question import QUESTIONS, question
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.views.step_view import Place, view_of

SESSION = open_session(ModelOptions(model="question"), None, None)
FIRST = Place()
WEIGHTS = "encoder.0.self_attention.weights"


def asked(name: str, place: Place = FIRST, number: int = 0):
    view = view_of(SESSION.trace, name, SESSION.labels, head=place.head)
    return question(view, place, SESSION.trace.program.shape(name), number)


def test_the_word_that_a_row_looks_at_most_is_worked_out():
    found = asked(WEIGHTS, Place(2, 0, 0))
    best = int(SESSION.trace[WEIGHTS][2, 0].argmax())
    assert found.text == "Which word will “where” in head 2 look at most?"
    assert found.choices[found.right] == f"? ({best})"
    assert "0.98" in found.working


@pytest.mark.parametrize("name", SESSION.trace.program.by_name)
def test_every_step_has_a_question_with_one_right_answer(name):
    for number in range(len(QUESTIONS)):
        found = asked(name, Place(), number)
        assert 2 <= len(found.choices) <= 4
        assert len(set(found.choices)) == len(found.choices)
        assert 0 <= found.right < len(found.choices)
        assert found.working


def test_shape_sum_and_sign_are_right():
    shape, total = asked(WEIGHTS, number=1), asked(WEIGHTS, number=2)
    assert shape.choices[shape.right] == shape_text((4, 9, 9))
    assert total.choices[total.right] == "1"
    assert total.working.endswith("= 1")
    name, place = "encoder.0.self_attention.query", Place(1, 2, 3)
    sign = asked(name, place, 1)
    assert ("below" in sign.choices[sign.right]) == (SESSION.trace[name][1, 2, 3] < 0)


def test_equal_values_are_not_asked_for_the_largest():
    view = view_of(SESSION.trace, "embedding.positions", SESSION.labels)
    texts = [question(view, Place(), (9, 32), number).text for number in range(4)]
    assert not any("largest" in text for text in texts)
    assert np.unique(SESSION.trace["embedding.positions"][0]).size == 2


@pytest.mark.parametrize("size", [WIDE, NARROW, SMALL])
async def test_values_are_hidden_until_the_question_is_answered_and_the_score_is_kept(size):
    async with exploring(size, model="question") as explorer:
        await explorer.go(WEIGHTS)
        await explorer.press("]", "]", "p")
        assert "Which word will" in explorer.text
        assert ".98" not in explorer.text
        right = explorer.app.screen._question.right
        await explorer.press(str(right + 1))
        await explorer.press("enter")
        assert "1 of 1 predicted" in explorer.messages[-1]
        await explorer.press("p", "1", "escape")
        assert "of 2 predicted" in explorer.messages[-1]
        await explorer.press("p", "escape")
        assert explorer.parts.predicting.asked == 2


async def test_where_there_are_words_there_is_nothing_to_predict():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("p")
        assert "nothing to predict" in explorer.messages[-1]
