"""The opening line, and where messages are shown."""

from __future__ import annotations

import re

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from reference import REFERENCES

from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.answer_summary import describe, describe_cost

SIZES = {
    WIDE: ("space step", " / ", " t Where does .99 come from?", " o ", "? help", "q quit"),
    MEDIUM: ("space step", " / ", " t ", " o ", "? help", "q quit"),
    NARROW: ("space step", " / ", " t ", " o ", "? help", "q quit"),
    SMALL: ("question 99.9 %   space t / o   ? help",),
}


async def test_it_opens_with_the_answer_and_the_choices_until_the_first_key():
    async with exploring(MEDIUM, model="question") as explorer:
        for size, says in SIZES.items():
            await explorer.resize(*size)
            await explorer.shown("question 99.9 %", *says)
        await explorer.press("space")
        async for _ in explorer.sizes(NARROW, MEDIUM, WIDE):
            assert "question 99.9 %" not in explorer.text
            assert "space next" in explorer.text


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
        await explorer.resize(*NARROW)
        await explorer.shown("space step", "o trained" if "random" in says else "o open")
        # a sentence is offered where one is read
        assert (" / " in explorer.text.splitlines()[-1]) == (model != "attention")


def test_labels_and_masked_words_are_told():
    session = open_session(ModelOptions(model=str(REFERENCES / "bert")), "the old [MASK] sails", None)
    assert describe(session, lambda _: None).startswith("[MASK] → ")
    assert describe_cost(session) < 1e8


@pytest.mark.parametrize(("model", "mask"), [("bert", "[MASK]"), ("roberta", "<mask>")])
async def test_the_answer_in_the_whole_is_that_of_the_masked_word_as_at_the_opening(model, mask):
    async with exploring(WIDE, model=str(REFERENCES / model), text=f"the {mask} cat", whole=True) as explorer:
        await explorer.until(lambda: f"{mask} → " in explorer.text.splitlines()[-1])
        trace, ids = explorer.session.trace, explorer.session.encoding.ids
        place = [token.text for token in explorer.session.encoding.tokens].index(mask)
        assert len(ids) - 1 != place
        share = f"{trace['output.probabilities'][place].max():.1%}".replace("%", " %")
        assert share in explorer.text.splitlines()[-1]
        await explorer.go("output.probabilities")
        beside = explorer.text.split("most likely")[1]
        assert re.search(r"[\d.]+ %", beside)[0] == share, beside


async def test_a_message_is_one_line_at_the_foot_and_gives_way_to_the_next():
    async with exploring(NARROW, model="encoder") as explorer:
        async for _ in explorer.sizes(NARROW, WIDE):
            await explorer.press("T")
            assert "this model reads one sentence" in explorer.text.splitlines()[-1]
            await explorer.press("u")
            assert "there is nothing to undo" in explorer.text.splitlines()[-1]
            assert "this model reads one sentence" not in explorer.text
        # what was said can be read again
        await explorer.app.run_action("app.messages")
        await explorer.handled()
        first, second = (explorer.text.index(said) for said in ("nothing to undo", "this model reads one"))
        assert first < second
        await explorer.press("escape")
        # a long message is shown whole, and markup is text
        await explorer.resize(*NARROW)
        explorer.parts.port.say("[b]what " + "long " * 30 + "ends[/b]", "error")
        await explorer.shown("[b]what", "ends[/b]")
        # a very small terminal has no room for either
        await explorer.resize(12, 4)
        await explorer.press("space")


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
