"""The nearest words in the explorer, and the sentences of a batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driving import MEDIUM, NARROW, WIDE, exploring

from tui_transformer.model.options import ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session


async def test_the_nearest_words_of_a_sum_are_listed():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.app.screen.run_action("open('nearest')")
        await explorer.settled()
        # what is no word keeps the prompt
        await explorer.answer("xyzzy")
        await explorer.shown("'xyzzy' is not one token")
        await explorer.answer("sailor - old + teacher")
        await explorer.shown("Words near to sailor − old + teacher", "cosine")
        await explorer.press("escape")
        assert explorer.app.screen is explorer.main


async def test_a_model_without_words_has_no_neighbours():
    async with exploring(WIDE, model="attention") as explorer:
        await explorer.app.screen.run_action("open('nearest')")
        await explorer.settled()
        assert "no embedding of words" in explorer.text


@pytest.fixture
def royal(tmp_path: Path) -> Session:
    words, vectors = tmp_path / "words.txt", tmp_path / "vectors.txt"
    words.write_text("king man woman queen sea")
    vectors.write_text("king 1 1 0 0\nman 1 0 0 0\nwoman 0 0 1 0\nqueen 0 1 1 0\n")
    return open_session(ModelOptions("encoder", vocab=str(words), vectors=str(vectors)), "king man sea", None)


async def test_the_embedding_shows_nearest_words_of_its_row_and_of_the_sum_that_was_asked(royal: Session):
    async with exploring(NARROW, session=royal) as explorer:
        await explorer.go("embedding.tokens")
        await explorer.press("4")
        for size in (NARROW, MEDIUM, WIDE):
            await explorer.resize(*size)
            await explorer.shown("nearest", "man 0.71")
            await explorer.press("down")
            await explorer.shown("king 0.71")
            await explorer.press("~")
            await explorer.answer("king - man + woman")
            await explorer.shown("Words near to king − man + woman", "queen")
            await explorer.press("escape", "up")
        await explorer.press("Z")
        await explorer.until(lambda: explorer.scene.near and len(explorer.scene.near) == 2)
        king, man, woman = (np.array(row) for row in ((1, 1, 0, 0), (1, 0, 0, 0), (0, 0, 1, 0)))
        sum_, queen = king / np.sqrt(2) - man + woman, np.array((0, 1, 1, 0))
        assert explorer.scene.near[1].of == "king − man + woman"
        assert explorer.scene.near[1].words[0][0] == "queen"
        cosine = sum_ @ queen / np.linalg.norm(sum_) / np.sqrt(2)
        assert explorer.scene.near[1].words[0][1] == pytest.approx(cosine, abs=1e-6)


async def test_rows_of_the_table_itself_have_neighbours_and_other_steps_none(royal: Session):
    async with exploring(WIDE, session=royal) as explorer:
        await explorer.go("embedding.tokens")
        await explorer.press("w")
        await explorer.until(lambda: explorer.scene.near)
        assert explorer.scene.near[0].of == royal.model.word(explorer.position.place.row)
        await explorer.go("encoder.0.self_attention.weights")
        assert explorer.scene.near is None


async def test_a_row_of_zeros_has_no_neighbours_and_one_sentence_is_no_batch():
    session = open_session(ModelOptions("encoder", embedding="zeros"), "the waves", None)
    async with exploring(WIDE, session=session) as explorer:
        await explorer.go("embedding.tokens")
        await explorer.shown("none: its row is 0")
        await explorer.press(".")
        assert "one sentence is open" in explorer.text


async def test_a_key_goes_round_the_sentences_of_a_batch():
    batch = ("the dog bites", "the cat", "a man")
    session = open_session(ModelOptions("encoder", vocab="english"), batch[0], None).with_batch(batch)
    async with exploring(WIDE, session=session) as explorer:
        for keys, expected in ((".", 1), (">>", 2)):
            await explorer.press(*keys)
            assert explorer.session.item == expected
            assert f"Sentence {expected + 1} of 3 · . next" in explorer.text
            assert explorer.session.text == batch[expected]
            assert explorer.session.encoding.tokens[-1].text == "[PAD]"
            weights = explorer.session.trace["encoder.0.self_attention.weights"]
            assert (weights[..., 2] == 0).all()
