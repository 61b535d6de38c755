"""Questions and their right answers, worked out from the values; and the screen that asks them."""

from __future__ import annotations

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.edits import Edit
from tui_transformer.explorer.main.question import QUESTIONS, Question, chosen, question
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.user_files import Score, keep_score, read_score, score_path
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.guide.texts import tour, tours
from tui_transformer.model.options import ModelOptions
from tui_transformer.views.step_view import Place, view_of

SESSION = open_session(ModelOptions(model="question"), None, None)
FIRST = Place()
WEIGHTS = "encoder.0.self_attention.weights"


def asked(name: str, place: Place = FIRST, number: int = 0):
    view = view_of(SESSION.trace, name, SESSION.labels, head=place.head)
    return question(view, place, SESSION.trace.program.shape(name), number)


def test_the_word_that_a_row_looks_at_most_is_worked_out():
    question = asked(WEIGHTS, Place(2, 0, 0))
    best = int(SESSION.trace[WEIGHTS][2, 0].argmax())
    assert question.text == "Which word will “where” in head 2 look at most?"
    assert question.choices[question.right] == f"? @{best}"
    assert "0.98" in question.working


@pytest.mark.parametrize("name", SESSION.trace.program.by_name)
def test_every_step_has_a_question_with_one_right_answer(name):
    for number in range(len(QUESTIONS)):
        question = asked(name, Place(), number)
        assert 2 <= len(question.choices) <= 4
        assert len(set(question.choices)) == len(question.choices)
        assert 0 <= question.right < len(question.choices)
        assert question.working


def test_shape_sum_and_sign_are_right():
    shape, total = asked(WEIGHTS, number=1), asked(WEIGHTS, number=2)
    assert shape.choices[shape.right] == shape_text((4, 9, 9))
    assert total.choices[total.right] == "1"
    assert total.working.endswith("= 1")
    name, place = "encoder.0.self_attention.query", Place(1, 2, 3)
    sign = asked(name, place, 1)
    assert ("below" in sign.choices[sign.right]) == (SESSION.trace[name][1, 2, 3] < 0)


def test_a_row_that_was_set_by_hand_is_not_said_to_sum_to_1():
    session = SESSION.with_edits(Edit(WEIGHTS, (0, 0, 1), 5.0))
    view = view_of(session.trace, WEIGHTS, session.labels, head=0)
    assert QUESTIONS["sum"](view, Place(0, 0, 1), (4, 9, 9)) is None
    assert QUESTIONS["sum"](view, Place(0, 1, 1), (4, 9, 9)) is not None


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
        await explorer.press(str(right + 1), "enter")
        assert "Right." in explorer.text
        await explorer.press("enter")
        assert "1 of 1 predicted" in explorer.messages[-1]
        await explorer.press("p", "1", "enter", "escape")
        assert "of 2 predicted" in explorer.messages[-1]
        await explorer.press("p", "escape")
        assert read_score().asked == 2


async def test_what_is_revealed_shows_its_numbers_beside_or_above_the_question():
    async with exploring(MEDIUM, model="question") as explorer:
        await explorer.go("encoder.0.self_attention.scores")
        await explorer.press("]", "]", "p", "down", "enter")
        assert "19.64" in explorer.text
        assert "enter go on" in explorer.text


async def test_an_answer_is_typed_in_words_and_a_wrong_one_is_corrected():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.go(WEIGHTS)
        await explorer.press("]", "]", "p")
        await explorer.press(*"sailor", "enter")
        assert "You said sailor. It is ? @8." in explorer.text
        await explorer.press("escape", "p")
        assert "Which shape" in explorer.text
        await explorer.press(*"4x9x9", "enter")
        assert "Right." in explorer.text


@pytest.mark.parametrize("size", [WIDE, SMALL])
async def test_nothing_is_chosen_at_first_and_enter_without_a_choice_says_so(size):
    async with exploring(size, model="question") as explorer:
        await explorer.go(WEIGHTS)
        await explorer.press("]", "]", "p")
        answers = explorer.app.screen.query_one(LineList)
        assert answers.cursor is None
        await explorer.resize(size[0] - 1, size[1])
        await explorer.press("enter")
        assert "nothing is chosen" in explorer.text
        assert ".98" not in explorer.text
        assert answers.cursor is None
        await explorer.press("tab", "down", "down")
        assert answers.cursor == 1
        await explorer.press("enter")
        assert "nothing is chosen" not in explorer.text
        assert "@" in explorer.text
        await explorer.press("escape")
        assert read_score().asked == 1


async def test_the_score_lasts_after_the_program_ends():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.go(WEIGHTS)
        await explorer.press("p", "down", "enter", "enter")
    async with exploring(NARROW, model="question") as explorer:
        assert read_score().asked == 1
        await explorer.go(WEIGHTS)
        await explorer.press("p", "up", "enter", "enter")
        assert "of 2 predicted" in explorer.messages[-1]


@pytest.mark.parametrize(
    "broken", ["", "[]", '{"right": 3}', '{"right": 9, "asked": 1}', '{"right": true, "asked": "x"}']
)
def test_a_score_that_cannot_be_read_begins_anew(broken):
    score_path().parent.mkdir(parents=True, exist_ok=True)
    score_path().write_text(broken)
    assert read_score() == Score()
    keep_score(Score().and_then(right=True))
    assert read_score() == Score(1, 1)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("where", 0),
        ("WHERE @0", 0),
        ("?", 1),
        ("(8)", None),
        ("@8", 1),
        ("2", 1),
        ("whe", 0),
        ("9", None),
        ("sailor", None),
    ],
)
def test_what_is_typed_is_read_as_one_of_the_answers(typed, meant):
    offered = Question("which?", ("where @0", "? @8", "did @1"), 1, "")
    assert chosen(offered, typed) == meant


@pytest.mark.parametrize(("typed", "meant"), [("-", 0), ("negative", 0), ("0", 1), ("positive", 2), ("above", 2)])
def test_a_sign_has_several_names(typed, meant):
    assert chosen(Question("sign?", ("below 0", "exactly 0", "above 0"), 2, ""), typed) == meant


async def test_the_tour_asks_before_it_shows():
    async with exploring(WIDE, model="question") as explorer:
        stops = [stop.name for stop in tour("question")]
        await explorer.press("t", *["space"] * stops.index("product"))
        assert "Which shape has this step?" in explorer.text
        assert "19.64" not in explorer.text
        await explorer.press("escape")
        assert "Multiplied column by column" in explorer.text
        assert explorer.stop == "encoder.0.self_attention.scores"
        await explorer.press("backspace", "space")
        assert "Which shape" not in explorer.text
        assert "Multiplied column by column" in explorer.text
        await explorer.press("escape")
        assert read_score().asked == 0


async def test_the_cell_that_is_asked_for_is_marked_once_it_is_revealed():
    async with exploring(NARROW, model="question") as explorer:
        stops = [stop.name for stop in tour("question")]
        await explorer.press("t", *["space"] * stops.index("full_stop"))
        await explorer.press("space", "space")  # two questions on the way are skipped
        assert "Which word will" in explorer.text
        assert "▌" not in explorer.text
        await explorer.press("down", "enter")
        assert "▌  .95   ▐" in explorer.text


def test_every_question_of_a_tour_can_be_asked():
    asked = [(name, stop) for name in tours() for stop in tour(name) if stop.predict]
    assert len(asked) >= 3
    for name, stop in asked:
        session = open_session(ModelOptions(model=name), stop.sentence, None)
        view = view_of(session.trace, stop.step, session.labels, head=stop.head or 0)
        place = Place(stop.head or 0, stop.row or 0, stop.column or 0)
        assert QUESTIONS[stop.predict](view, place, session.trace.program.shape(stop.step)) is not None


async def test_a_space_skips_the_question_of_a_tour_and_is_typed_within_an_answer():
    async with exploring(WIDE, model="question") as explorer:
        stops = [stop.name for stop in tour("question")]
        await explorer.press("t", *["space"] * stops.index("product"), "4", "space")
        assert "Which shape has this step?" in explorer.text
        await explorer.press("backspace", "backspace", "space")
        assert "Multiplied column by column" in explorer.text


async def test_where_there_are_words_there_is_nothing_to_predict():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("p")
        assert "nothing to predict" in explorer.messages[-1]
