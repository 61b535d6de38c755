"""Questions and their right answers, worked out from the values; and the screen that asks them."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WEIGHTS, WIDE, exploring
from reference import REFERENCES
from textual.widgets import Static
from touring import lead_to

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.edits import Edit
from tui_transformer.explorer.main.panes.card import TourPanel
from tui_transformer.explorer.main.predict import operands
from tui_transformer.explorer.main.question import QUESTIONS, Question, chosen, question, question_at
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.user_files import Score, count_answer, read_score, score_path
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.guide.texts import tour, tour_model, tours
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.position import Position
from tui_transformer.session.step_scene import step_scene
from tui_transformer.session.store import ENDLESS, Reading, Store
from tui_transformer.session.tour_stop import thinking_place
from tui_transformer.session.view_state import ViewState
from tui_transformer.views.step_view import Place, view_of

SESSION = open_session(ModelOptions(model="question"), None, None)
SCORES = "encoder.0.self_attention.scores"


def asked(name: str, place: Place = Place(), number: int = 0):  # noqa: B008
    view = view_of(SESSION.trace, name, SESSION.labels, head=place.head)
    return question(SESSION.trace, view, place, number)


def test_how_one_could_have_known_is_true_of_what_the_step_is_made_from():
    question = asked(WEIGHTS, Place(2, 0, 0))
    best = int(SESSION.trace[WEIGHTS][2, 0].argmax())
    assert question.text == "Which word will “where” in head 2 look at most?"
    assert question.choices[question.right] == f"? @{best}"
    scores = np.sort(SESSION.trace["encoder.0.self_attention.masked"][2, 0])
    ahead = f"? @8 has the largest score, {scores[-1]:.3f}, before hide @5 with {scores[-2]:.3f}"
    assert question.known_by == f"{ahead}: a softmax keeps their order."
    # sums and largest numbers
    trace = SESSION.trace
    query, key, scores = (trace[f"encoder.0.self_attention.{name}"] for name in ("query", "key", "scores"))
    products = query[1, 2].astype(np.float64) * key[1, 3]
    above, below = (float(products[products * sign > 0].sum()) for sign in (1, -1))
    sign = QUESTIONS["sign"](trace, view_of(trace, SCORES, SESSION.labels, head=1), Place(1, 2, 3))
    said = [float(each) for each in re.findall(r"-?[\d.]+", sign.known_by.replace("−", "-").rstrip("."))]
    assert said == [8, *(pytest.approx(each, rel=1e-3) for each in (above, 0, below, scores[1, 2, 3]))]
    largest = asked("encoder.0.self_attention.residual", number=2)
    stream, added = (trace[name][0] for name in ("embedding.output", "encoder.0.self_attention.output"))
    best = int((stream + added).argmax())
    assert largest.choices[largest.right] == str(best)
    told = {"Token embedding": stream, "Attention output": added}
    name, _, value = largest.known_by.rstrip(".").partition(" is largest there too: ")
    assert told[name].argmax() == best
    assert float(value) == pytest.approx(told[name].max(), rel=1e-3)


@pytest.mark.parametrize("model", ["attention", "dates", "encoder", "decoder", "question"])
def test_every_question_has_one_right_answer_and_says_in_one_line_how_one_could_have_known(model):
    session = open_session(ModelOptions(model=model), None, None)
    for name, number in product(session.trace.program.by_name, range(len(QUESTIONS))):
        made = question(session.trace, view_of(session.trace, name, session.labels, head=0), Place(), number)
        assert re.fullmatch(r"[^\n]{4,160}\.", made.known_by), (name, made)
        assert "this step" not in made.text
        assert 2 <= len(made.choices) == len(set(made.choices)) <= 4, name
        assert 0 <= made.right < len(made.choices), name


def test_queries_that_share_keys_are_shown_above_theirs():
    session = open_session(ModelOptions(model=str(REFERENCES / "llama")), None, (5, 9, 12))
    at = Position("decoder.0.self_attention.scores", Place(3, 1, 0))
    scene = step_scene(Reading(Store(), here=True, most=ENDLESS), session, at, ViewState(), "value")
    titles = [each.title for each in operands(session, scene)]
    assert titles == ["made from Rotated queries · head 3 · 4 × 3 × 8", "made from Rotated keys · head 1 · 2 × 3 × 8"]


def test_shape_sum_and_sign_are_right_and_what_would_not_be_is_not_asked():
    shape, total = asked(WEIGHTS, number=1), asked(WEIGHTS, number=2)
    assert shape.choices[shape.right] == shape_text((4, 9, 9))
    assert total.choices[total.right] == "1"
    assert total.known_by.endswith("= 1.")
    name, place = "encoder.0.self_attention.query", Place(1, 2, 3)
    sign = asked(name, place, 1)
    assert ("below" in sign.choices[sign.right]) == (SESSION.trace[name][1, 2, 3] < 0)
    # a row that was set by hand is not said to sum to 1
    session = SESSION.with_edits(Edit(WEIGHTS, (0, 0, 1), 5.0))
    view = view_of(session.trace, WEIGHTS, session.labels, head=0)
    assert QUESTIONS["sum"](session.trace, view, Place(0, 0, 1)) is None
    assert QUESTIONS["sum"](session.trace, view, Place(0, 1, 1)) is not None
    # of equal values none is the largest
    view = view_of(SESSION.trace, "embedding.positions", SESSION.labels)
    texts = [question(SESSION.trace, view, Place(), number).text for number in range(4)]
    assert not any("largest" in text for text in texts)
    assert np.unique(SESSION.trace["embedding.positions"][0]).size == 2


@pytest.mark.parametrize("size", [WIDE, NARROW, SMALL])
async def test_values_are_hidden_until_the_question_is_answered_and_the_score_is_kept(size):
    async with exploring(size, model="question", at=WEIGHTS) as explorer:
        await explorer.press("]", "]", "p")
        assert "Which word will" in explorer.text
        assert (".98" in explorer.text, "6.94" in explorer.text) == (False, size != SMALL)  # the scores are there
        right = explorer.app.screen._question.right
        await explorer.press(str(right + 1), "enter")
        assert "Right." in explorer.text
        assert "a softmax keeps their order." in " ".join(explorer.text.replace("│", " ").split())
        await explorer.press("enter")
        assert "1 of 1 predicted" in explorer.messages[-1]
        await explorer.press("p", "1", "enter", "escape")
        assert "of 2 predicted" in explorer.messages[-1]
        await explorer.press("p", "escape")
        assert read_score().asked == 2


async def test_what_is_revealed_shows_its_numbers_beside_or_above_the_question():
    async with exploring(MEDIUM, model="question", at="encoder.0.self_attention.scores") as explorer:
        await explorer.press("]", "]", "p", "down", "enter")
        assert "19.64" in explorer.text
        assert "enter go on" in explorer.text


async def test_an_answer_is_typed_in_words_and_a_wrong_one_is_corrected():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("p")  # where there are words
        assert "nothing to predict" in explorer.messages[-1]
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
    async with exploring(size, model="question", at=WEIGHTS) as explorer:
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
    count_answer(right=True)
    async with exploring(NARROW, model="question", at=WEIGHTS) as explorer:
        await explorer.press("p", "up", "enter", "enter")
        assert "of 2 predicted" in explorer.messages[-1]
        assert read_score().asked == 2


@pytest.mark.parametrize(
    "broken", ["", "[]", '{"right": 3}', '{"right": 9, "asked": 1}', '{"right": true, "asked": "x"}']
)
def test_a_score_that_cannot_be_read_begins_anew(broken):
    score_path().parent.mkdir(parents=True, exist_ok=True)
    score_path().write_text(broken)
    assert read_score() == Score()
    count_answer(right=True)
    assert read_score() == Score(1, 1)


def test_what_is_typed_is_read_as_one_of_the_answers():
    offered = Question("which?", ("where @0", "? @8", "did @1"), 1, "")
    for typed in ("where", "WHERE @0", "whe"):
        assert chosen(offered, typed) == 0, typed
    for typed in ("?", "@8", "2"):
        assert chosen(offered, typed) == 1, typed
    for typed in ("(8)", "9", "sailor"):
        assert chosen(offered, typed) is None, typed
    # a sign has several names
    sign = Question("sign?", ("below 0", "exactly 0", "above 0"), 2, "")
    meant = {"-": 0, "negative": 0, "0": 1, "positive": 2, "above": 2}
    assert {typed: chosen(sign, typed) for typed in meant} == meant


def card_of(explorer) -> str:
    region = explorer.main.query_one(TourPanel).region
    lines = explorer.text.split("\n")[region.y : region.bottom]
    return " ".join(" ".join(line.strip("│ ") for line in lines).split())


async def test_a_stop_asks_in_the_card_and_shows_what_one_needs_to_think():
    async with exploring(WIDE, model="question") as explorer:
        for number, size in enumerate((WIDE, MEDIUM, NARROW, SMALL)):
            await explorer.resize(*size)
            await lead_to(explorer, "question", "softmax")
            assert explorer.app.screen is explorer.main
            assert explorer.stop == "encoder.0.self_attention.masked"
            card = card_of(explorer)
            assert "What do the attention weights of “where” in head 2 add up to? 1: 0 2: 1" in card
            assert "▸" not in card
            assert "e to the power" not in card
            assert ("−1.2" if size == SMALL else "6.9") in explorer.text  # the scores are on the screen
            await explorer.press("enter")
            await explorer.shown("nothing is chosen: 1 to 4")
            assert read_score().asked == number
            await explorer.press("2")
            assert "▸2: 1" in card_of(explorer)
            await explorer.press("enter")
            assert read_score() == Score(number + 1, number + 1)
            assert explorer.stop == WEIGHTS
            said = str(explorer.main.query_one("#verdict", Static).content)
            assert re.fullmatch(r"Right\. A softmax divides each by the sum of its row: [^\n]* = 1\.", said)
            assert "e to the power" in str(explorer.main.query_one("#words", Static).content)
            await explorer.press("right", "left")
            assert explorer.stop == WEIGHTS  # it is asked once
            await explorer.press("escape")


async def test_a_question_of_a_tour_is_skipped_and_not_counted():
    async with exploring(NARROW, model="question") as explorer:
        for skip in ("right", "space"):
            await lead_to(explorer, "question", "product")
            assert "made from Queries Q 4 × 9 × 8 and Keys K 4 × 9 × 8?" in card_of(explorer)
            assert "19.64" not in explorer.text
            await explorer.press("down", "2")
            assert explorer.main.query_one(TourPanel).has_focus
            await explorer.press(skip)
            assert explorer.stop == SCORES
            assert "Multiplied column by column" in card_of(explorer)
            assert "skips" not in card_of(explorer)
            assert read_score().asked == 0
            # the digits of the panes are theirs again
            await explorer.press("2")
            assert not explorer.main.query_one(TourPanel).has_focus
            await explorer.press("t")


async def test_a_question_that_is_left_behind_is_asked_again_and_the_tour_is_left_from_it():
    async with exploring(WIDE, model="question") as explorer:
        await lead_to(explorer, "question", "product")
        await explorer.press("up")
        assert "▸4:" in card_of(explorer)
        await explorer.press("left")
        assert "Its seventh number" in card_of(explorer)
        await explorer.press("right")
        assert "▸" not in card_of(explorer)
        await explorer.press("1", "4", "enter")
        assert "You said 9 × 9. It is 4 × 9 × 9." in card_of(explorer)
        assert read_score() == Score(0, 1)
        await explorer.press("left", "right", "escape")
        assert not explorer.main.query(TourPanel)
        await lead_to(explorer, "question", "product")
        await explorer.press("escape")
        assert not explorer.main.query(TourPanel)


async def test_the_cursor_stands_on_no_answer_before_it_is_given():
    async with exploring(NARROW, model="question") as explorer:
        await lead_to(explorer, "question-heads", "full_stop")
        assert "Which word will" in explorer.text
        assert explorer.position == Position("encoder.0.self_attention.masked", Place(1, 0, 0))
        await explorer.press("down", "enter")
        assert "▌  .95   ▐" in explorer.text


def test_every_question_of_a_tour_can_be_asked():
    asked = [(name, stop) for name in tours() for stop in tour(name) if stop.predict]
    assert len(asked) >= 3
    for name, stop in asked:
        session = open_session(ModelOptions(model=tour_model(name)), stop.sentence, None)
        at = Position(stop.step, Place(stop.head or 0, stop.row or 0, stop.column or 0))
        assert question_at(session, at, stop.predict) is not None
        assert thinking_place(session, at) is not None
