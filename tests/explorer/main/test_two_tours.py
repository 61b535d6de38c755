"""The story of one number, which ends where the tour of what heads look for begins; nothing else is counted."""

from __future__ import annotations

import re

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from textual.widgets import Static
from touring import lead_to, state

from tui_transformer.explorer.main.panes.card import TourPanel
from tui_transformer.guide.texts import tour


async def test_a_tour_has_one_counting_alone():
    steps = re.compile(r"\bstep \d+ of \d+|\b\d+/\d+")
    async with exploring(WIDE, model="question", whole=None) as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.go("encoder.0.self_attention.weights")
            assert steps.search(explorer.text)
            await explorer.press("t")
            for name in ("question", "gradients"):
                await explorer.tour(name)
                for _ in range(3):
                    assert not steps.search(explorer.text)
                    assert len(re.findall(r"Stop \d+ of \d+ · ", explorer.text)) == 1
                    await explorer.press("right")
            await explorer.press("escape")
            assert steps.search(explorer.text)


@pytest.mark.parametrize("colors", [True, False])
async def test_the_first_stop_is_one_sentence_and_arrows_at_one_number(colors, monkeypatch):
    if not colors:
        monkeypatch.setenv("NO_COLOR", "1")
    async with exploring(WIDE, model="question", whole=None) as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW, SMALL):
            await explorer.press("t")
            card = explorer.main.query_one(TourPanel)
            words = [str(each.content) for each in card.query(Static) if each.display]
            assert words == [tour("question")[0].text]
            assert re.findall(r"→ *([\d.]+) *←", explorer.text) == [".99"]
            await explorer.press("right", "left")
            assert re.findall(r"→ *([\d.]+) *←", explorer.text) == [".99"]
            explorer.parts.navigation.go_to_cell(column=3)
            await explorer.settled()
            assert not re.search(r"→ *[\d.]+ *←", explorer.text)
            await explorer.press("right")
            assert not re.search(r"→ *[\d.]+ *←", explorer.text)
            await explorer.press("escape")


async def test_the_arrows_are_at_a_number_however_narrow_cells_were_made():
    async with exploring(WIDE, model="question", at="encoder.0.self_attention.weights") as explorer:
        explorer.parts.navigation.look(cell_width=2)
        await explorer.settled()
        await explorer.press("t")
        assert re.findall(r"→ *([\d.]+) *←", explorer.text) == [".99"]
        await explorer.press("escape")
        assert explorer.view.cell_width == 2


async def test_the_first_tour_offers_the_second_at_its_end_and_the_second_ends():
    async with exploring(MEDIUM, model="question") as explorer:
        # it is left at its last stop as at any
        for key in ("right", "escape"):
            await lead_to(explorer, "question", tour("question")[-1].name)
            await explorer.press(key)
            assert not explorer.main.query(TourPanel)
        before = state(explorer)
        await lead_to(explorer, "question", tour("question")[-1].name)
        await explorer.shown("Stop 17 of 17", "t goes on: What do the heads look for?", "t next tour", "enter end")
        assert "next stop" not in explorer.text
        await explorer.press("t")
        await explorer.shown("Stop 1 of 9", "the other three heads look")
        explorer.parts.tour.go(8)
        await explorer.settled()
        assert "goes on" not in explorer.text
        await explorer.press("t")
        assert not explorer.main.query(TourPanel)
        assert state(explorer) == before
