"""The opening line, and where messages are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.answer_summary import describe, describe_cost

REFERENCES = Path(__file__).parents[2] / "references"


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_it_opens_with_the_answer_and_the_choices_until_the_first_key(size):
    async with exploring(size, model="question") as explorer:
        await explorer.shown("question 99.9 %", "space step", " / ", " t ", " o ", "? help", "q quit")
        await explorer.press("space")
        assert "question 99.9 %" not in explorer.text
        assert "space next" in explorer.text


async def test_a_small_line_has_the_answer_and_the_keys_alone():
    async with exploring(SMALL, model="question") as explorer:
        await explorer.shown("question 99.9 %   space t / o   ? help")


async def test_a_model_that_reads_no_sentence_is_offered_none():
    async with exploring(NARROW, model="attention") as explorer:
        await explorer.shown("space step", "o open")
        assert " / " not in explorer.text.splitlines()[-1]


async def test_a_wide_line_asks_the_question_of_the_tour():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.shown("t Where does .99 come from?")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("dates", "0 100.0 %"),
        ("copy", "%"),
        ("story", "%"),
        ("decoder", "random weights: nothing is learned"),
        ("encoder-decoder", "random weights: nothing is learned"),
        ("attention", "query 2 looks at key 2: 99."),
    ],
)
async def test_a_model_of_every_kind_says_something_first(model, says):
    async with exploring(WIDE, model=model) as explorer:
        await explorer.until(lambda: says in explorer.text.splitlines()[-1])
        assert "space step" in explorer.text.splitlines()[-1]


def test_labels_and_masked_words_are_told():
    session = open_session(ModelOptions(model=str(REFERENCES / "bert")), "the old [MASK] sails", None)
    assert describe(session, lambda _: None).startswith("[MASK] → ")
    assert describe_cost(session) < 1e8


async def test_a_very_small_terminal_opens():
    async with exploring(SMALL, model="question") as explorer:
        await explorer.resize(12, 4)
        await explorer.press("space")


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_message_is_one_line_at_the_foot_and_gives_way_to_the_next(size):
    async with exploring(size, model="encoder") as explorer:
        await explorer.press("T")
        assert "this model reads one sentence" in explorer.text.splitlines()[-1]
        await explorer.press("u")
        assert "there is nothing to undo" in explorer.text.splitlines()[-1]
        assert "this model reads one sentence" not in explorer.text


async def test_what_was_said_can_be_read_again():
    async with exploring(NARROW, model="encoder") as explorer:
        await explorer.press("T", "u")
        await explorer.app.run_action("app.messages")
        await explorer.handled()
        first, second = (explorer.text.index(said) for said in ("nothing to undo", "this model reads one"))
        assert first < second


async def test_a_long_message_is_shown_whole_and_markup_is_text():
    async with exploring(NARROW, model="encoder") as explorer:
        explorer.parts.port.say("[b]what " + "long " * 30 + "ends[/b]", "error")
        await explorer.shown("[b]what", "ends[/b]")


async def test_random_weights_are_drawn_again_and_learned_ones_are_not():
    async with exploring(NARROW) as explorer:
        seed = explorer.session.model.seed
        explorer.main.action_open("draw-again")
        await explorer.until(lambda: explorer.session.model.seed == seed + 1)
        await explorer.press("u")
        assert explorer.session.model.seed == seed
        explorer.parts.port.change(open_session(ModelOptions(model="question"), None, None))
        explorer.main.action_open("draw-again")
        await explorer.until(lambda: "these weights were learned" in " ".join(explorer.messages))
