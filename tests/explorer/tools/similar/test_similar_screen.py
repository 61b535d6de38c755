"""Nearest words and sentences that are compared, and those of a batch."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring

from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.help_page import HelpScreen
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.tools.similar import SimilarScreen
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session

FOLDER = str(Path(__file__).parents[3] / "sentences" / "bert")
IDS = (2, 17, 40, 8, 9)


async def compared(explorer: Explorer, other: str) -> SimilarScreen:
    await explorer.prompt("J", other)
    screen = await explorer.front(SimilarScreen)
    await explorer.until(lambda: bool(screen.compared))
    return screen


async def test_the_other_sentence_is_asked_for_and_the_pairs_are_shown():
    async with exploring(WIDE, model=FOLDER, ids=IDS) as explorer:
        # one that cannot be read is asked for again
        await explorer.prompt("J", "999")
        assert isinstance(explorer.app.screen, PromptScreen)
        await explorer.press("escape")
        assert "nothing is compared yet" in explorer.text
        await explorer.press("escape")
        # one that can
        screen = await compared(explorer, "2 33 8")
        together = screen.compared[-1][1]
        assert together.shares.shape == (6, 4)
        assert together.shares.sum() == pytest.approx(together.cosine, abs=1e-5)
        assert f"cosine {together.cosine:.4f}" in explorer.text
        assert "of the cosine" in explorer.text
        assert "(bias)" in explorer.text
        await explorer.leave()


async def test_another_sentence_takes_its_place_at_every_size_and_enter_goes_to_what_is_pooled():
    async with exploring(WIDE, model=FOLDER, ids=IDS) as explorer:
        screen = await compared(explorer, "2 33 8")
        # each pair once, though a column has room for two numbers
        lines = [line for line in explorer.text.splitlines() if re.match(r"│ *\S+ +[+−]\d\.\d{3}", line)]
        shares = [[minus(f"{share:+.3f}") for share in row] for row in screen.compared[-1][1].shares]
        assert [re.findall(r"[+−]?\d*\.\d+", line) for line in lines] == shares
        await explorer.prompt("/", "2 17 40 8 9")
        await explorer.until(lambda: len(screen.compared) == 2)
        assert screen.compared[-1][1].cosine == pytest.approx(1.0, abs=1e-6)
        assert "1.000" in explorer.text
        # every size, and the help
        async for _ in explorer.sizes(MEDIUM, (60, 20), SMALL, (5, 3), (1, 1), NARROW):
            await explorer.press("down", "right", "minus", "plus")
        await explorer.press("?")
        assert isinstance(explorer.app.screen, HelpScreen)
        await explorer.press("escape", "g", "enter")
        assert explorer.stop == "encoder.1.feed_forward.norm"


async def test_the_nearest_words_of_a_sum_are_listed():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.open("nearest")
        # what is no word keeps the prompt
        await explorer.answer("xyzzy")
        await explorer.shown("'xyzzy' is not one token")
        await explorer.answer("sailor - old + teacher")
        await explorer.shown("Words near to sailor − old + teacher", "cosine")
        await explorer.leave()


@pytest.fixture
def royal(tmp_path: Path) -> Session:
    words, vectors = tmp_path / "words.txt", tmp_path / "vectors.txt"
    words.write_text("king man woman queen sea")
    vectors.write_text("king 1 1 0 0\nman 1 0 0 0\nwoman 0 0 1 0\nqueen 0 1 1 0\n")
    return open_session(ModelOptions("encoder", vocab=str(words), vectors=str(vectors)), "king man sea", None)


async def test_the_embedding_shows_nearest_words_of_its_row_and_of_the_sum_that_was_asked_and_other_steps_none(royal):
    async with exploring(NARROW, session=royal, at="embedding.tokens") as explorer:
        await explorer.press("4")
        async for _ in explorer.sizes(NARROW, MEDIUM, WIDE):
            await explorer.shown("nearest", "man 0.71")
            await explorer.press("down")
            await explorer.shown("king 0.71")
            await explorer.prompt("~", "king - man + woman")
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
        await explorer.press("Z")
        await explorer.press("w")
        await explorer.until(lambda: explorer.scene.near)
        assert explorer.scene.near[0].of == royal.model.word(explorer.position.place.row)
        await explorer.go("encoder.0.self_attention.weights")
        assert explorer.scene.near is None


async def test_a_row_of_zeros_has_no_neighbours_and_one_sentence_is_no_batch():
    session = open_session(ModelOptions("encoder", embedding="zeros"), "the waves", None)
    async with exploring(WIDE, session=session, at="embedding.tokens") as explorer:
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
    async with exploring(WIDE, session=session, preferences=Preferences()) as explorer:  # with menus
        assert "Sentence 1 of 3 · m n next" in explorer.text
        await explorer.press("m", "n")
        assert explorer.session.item == 1
