"""The nearest words in the explorer, and the sentences of a batch."""

from __future__ import annotations

import pytest
from driving import WIDE, exploring

from tui_transformer.explorer.state.opened import open_session
from tui_transformer.model.options import ModelOptions


async def test_the_nearest_words_of_a_sum_are_listed():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.app.screen.run_action("open('nearest')")
        await explorer.settled()
        await explorer.answer("sailor - old + teacher")
        await explorer.shown("Words near to sailor − old + teacher", "cosine")
        await explorer.press("escape")
        assert explorer.app.screen is explorer.main


async def test_what_is_no_word_keeps_the_prompt_with_the_reason():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.app.screen.run_action("open('nearest')")
        await explorer.settled()
        await explorer.answer("xyzzy")
        await explorer.shown("'xyzzy' is not one token")


async def test_a_model_without_words_has_no_neighbours():
    async with exploring(WIDE, model="attention") as explorer:
        await explorer.app.screen.run_action("open('nearest')")
        await explorer.settled()
        assert "no embedding of words" in explorer.text


@pytest.mark.parametrize(("key", "expected"), [(".", 1), (">", 2)])
async def test_a_key_goes_round_the_sentences_of_a_batch(key: str, expected: int):
    batch = ("the dog bites", "the cat", "a man")
    session = open_session(ModelOptions("encoder", vocab="english"), batch[0], None).with_batch(batch)
    async with exploring(WIDE, session=session) as explorer:
        await explorer.press(key)
        assert explorer.session.item == expected
        assert explorer.session.text == batch[expected]
        assert explorer.session.encoding.tokens[-1].text == "[PAD]"
        weights = explorer.session.trace["encoder.0.self_attention.weights"]
        assert (weights[..., 2] == 0).all()


async def test_one_sentence_alone_is_said_to_be_no_batch():
    async with exploring(WIDE, text="the waves") as explorer:
        await explorer.press(".")
        assert "one sentence is open" in explorer.text
