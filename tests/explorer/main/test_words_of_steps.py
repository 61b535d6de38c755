"""The words of a step, what it is, why it is there and what to look for, can be read in full, at every size."""

from __future__ import annotations

import pytest
from driving import MEDIUM, NARROW, WIDE, Explorer, exploring

from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.lines import step_words

SIZES = (NARROW, MEDIUM, WIDE)


def words_in_pane(explorer: Explorer) -> str:
    """All lines of the pane of the cell, as far as they are drawn."""
    pane = explorer.main.query_one(CellPane)
    lines = ["".join(text for text, _ in pane.line_at(index)) for index in range(pane.extent[0])]
    lines = [line[: pane.size.width - 1] for line in lines]
    return "".join("".join(lines).split())


async def read(explorer: Explorer) -> None:
    """Go through all steps that have words of their own, and read each of them beside its numbers."""
    await explorer.press("5")
    said = {step_words(explorer.session, stop): stop for stop in reversed(explorer.session.stops)}
    for words, stop in said.items():
        await explorer.go(stop)
        shown = words_in_pane(explorer)
        for part in (words.what, words.why, words.look):
            assert "".join(part.split()) in shown, stop


async def test_every_step_of_an_encoder():
    async with exploring(WIDE, model="question", whole=True) as explorer:
        async for _ in explorer.sizes(*SIZES):
            await read(explorer)


@pytest.mark.parametrize(("model", "size"), [("encoder-decoder", NARROW), ("decoder", MEDIUM), ("story", WIDE)])
async def test_every_step_of_other_models(model, size):
    async with exploring(size, model=model, whole=None) as explorer:
        await read(explorer)


async def test_the_help_begins_with_them():
    async with exploring(NARROW, model="question", whole=None, at="encoder.0.self_attention.scaled") as explorer:
        words = step_words(explorer.session, explorer.stop)
        await explorer.press("?", "enter")
        async for _ in explorer.sizes(*SIZES):
            box = explorer.app.screen.query_one("#box").content_region
            lines = explorer.text.splitlines()[box.y : box.bottom]
            page = " ".join(" ".join(line[box.x : box.right - 1] for line in lines).split())  # without the scroll bar
            assert all(part in page for part in (words.what, words.why, words.look))
