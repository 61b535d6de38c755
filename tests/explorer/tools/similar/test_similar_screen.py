"""Two sentences in the explorer: the cosine, and what every pair of tokens gives to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring

from tui_transformer.explorer.shell.pages import HelpScreen
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.tools.similar import SimilarScreen

FOLDER = str(Path(__file__).parents[3] / "sentences" / "bert")
IDS = (2, 17, 40, 8, 9)


async def compared(explorer: Explorer, other: str) -> SimilarScreen:
    await explorer.press("J")
    await explorer.until(lambda: isinstance(explorer.app.screen, PromptScreen))
    await explorer.answer(other)
    screen = explorer.app.screen
    assert isinstance(screen, SimilarScreen)
    await explorer.until(lambda: bool(screen.compared))
    return screen


async def test_the_other_sentence_is_asked_for_and_the_pairs_are_shown():
    async with exploring(WIDE, model=FOLDER, ids=IDS) as explorer:
        # one that cannot be read is asked for again
        await explorer.press("J")
        await explorer.until(lambda: isinstance(explorer.app.screen, PromptScreen))
        await explorer.answer("999")
        assert isinstance(explorer.app.screen, PromptScreen)
        await explorer.press("escape")
        assert "nothing is compared yet" in explorer.text
        await explorer.press("escape")
        # one that can
        screen = await compared(explorer, "2 33 8")
        together = screen.compared[-1].together
        assert together.shares.shape == (6, 4)
        assert together.shares.sum() == pytest.approx(together.cosine, abs=1e-5)
        assert f"cosine {together.cosine:.4f}" in explorer.text
        assert "of the cosine" in explorer.text
        assert "(bias)" in explorer.text
        await explorer.press("escape")
        assert explorer.app.screen is explorer.main


async def test_another_sentence_takes_its_place_at_every_size_and_enter_goes_to_what_is_pooled():
    async with exploring(WIDE, model=FOLDER, ids=IDS) as explorer:
        screen = await compared(explorer, "2 33 8")
        await explorer.press("/")
        await explorer.answer("2 17 40 8 9")
        await explorer.until(lambda: len(screen.compared) == 2)
        assert screen.compared[-1].together.cosine == pytest.approx(1.0, abs=1e-6)
        assert "1.000" in explorer.text
        # every size, and the help
        for size in (MEDIUM, (60, 20), SMALL, (5, 3), (1, 1), NARROW):
            await explorer.resize(*size)
            await explorer.press("down", "right", "minus", "plus")
        await explorer.press("?")
        assert isinstance(explorer.app.screen, HelpScreen)
        await explorer.press("escape", "g", "enter")
        assert explorer.stop == "encoder.1.feed_forward.norm"


async def test_a_model_without_vectors_says_so():
    async with exploring(WIDE) as explorer:
        await explorer.press("J")
        assert explorer.app.screen is explorer.main
        assert "makes no vector of a sentence" in explorer.text
