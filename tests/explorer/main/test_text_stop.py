"""The text at the end: the most likely words at every place, at a temperature."""

from __future__ import annotations

import numpy as np
import pytest
from driving import MEDIUM, NARROW, WIDE, exploring
from textual.widgets import Static

from tui_transformer.explorer.main.panes.matrix import TextPane
from tui_transformer.session.answer_summary import percent
from tui_transformer.session.edit_format import changes
from tui_transformer.session.session import TEXT


async def test_the_temperature_changes_the_table_and_nothing_else():
    async with exploring(WIDE, model="decoder", at=TEXT) as explorer:
        await explorer.press("4")
        logits = explorer.session.trace["output.logits"][0].astype(float)
        session = explorer.session
        await explorer.shown("softmax(logits ÷ T), T = 1")
        for key, temperature in (("-", 0.9), ("-", 0.8), ("+", 0.9), ("=", 1), ("+", 1.2)):
            await explorer.press(key)
            scaled = np.exp(logits / temperature)
            async for _ in explorer.sizes(MEDIUM, NARROW, WIDE):
                await explorer.shown(f"T = {temperature:g} ", percent(scaled.max() / scaled.sum()))
        assert explorer.session is session
        # the coldest takes the most likely word alone
        await explorer.resize(*NARROW)
        await explorer.press("=", *["-"] * 12)
        await explorer.shown("T = 0 (limit)", "100.0 %", " 0 %")


async def test_a_model_that_tells_lines_apart_has_one_answer():
    async with exploring(NARROW, model="question", text="what did the old sailor hide ?", at=TEXT) as explorer:
        await explorer.shown("at the first token, where this model answers")
        await explorer.settled()
        assert explorer.text.count("statement") == 1


async def test_a_model_that_writes_on_has_a_row_for_what_follows_each_word():
    async with exploring(WIDE, model="story", text="Once there was a small girl", at=TEXT) as explorer:
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.shown("a small girl”", "“ called”")
            row = next(line for line in explorer.text.splitlines() if "small girl”" in line and "after" in line)
            share = float(explorer.session.trace["output.probabilities"][-1].max())
            assert percent(share) in row
            assert row.index("“ called”") > row.index("girl”")
        # cells of the lens have their probability
        await explorer.resize(*WIDE)
        await explorer.prompt("/", "Once there was a small")
        await explorer.press("L")
        await explorer.shown("all words on screen")
        await explorer.shown(percent(float(explorer.session.trace["output.probabilities"][0].max())))


async def test_targets_are_completed_from_the_vocabulary():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("B")
        await explorer.write("stat")
        await explorer.shown("tab: station", "statement")
        await explorer.write("state")
        await explorer.shown("tab: statement")
        await explorer.press("tab")
        assert explorer.focused_input.value == "statement"


async def test_rows_that_there_is_no_room_for_are_scrolled_to():
    async with exploring(NARROW, model="encoder", text="the waves crashed " * 80, at=TEXT) as explorer:
        await explorer.shown("@0 ")
        assert "@199" not in explorer.text
        await explorer.press("4", "end")
        await explorer.shown("@199", "40 more places have no row here")
        await explorer.press("home")
        await explorer.shown("@0 ")
        await explorer.press("pagedown")
        await explorer.until(lambda: "@0 " not in explorer.text and "@199" not in explorer.text)


async def test_a_text_is_folded_for_the_columns_beside_its_scroll_bar():
    text = "the waves crashed forcefully against the shore ! " * 4
    async with exploring((120, 36), text=text, sizes={"layers": 1, "d_model": 16, "heads": 2}, at=TEXT) as explorer:
        pane = explorer.main.query_one(TextPane)
        assert pane.show_vertical_scrollbar
        await explorer.press("+", "-")  # drawn again, beside the bar
        lines = str(pane.query_one("#words", Static).visual).split("\n")
        assert max(map(len, lines[1 : lines.index("")])) <= pane.scrollable_content_region.width


@pytest.mark.parametrize("model", ["question", "story", "copy"])
async def test_where_the_logits_are_no_numbers_no_word_is_the_likeliest(model):
    async with exploring(NARROW, model=model) as explorer:
        session = explorer.session
        edit = changes(session.model, session.base.program, ["embedding.output[1,2] = inf"])
        await explorer.change(session.with_edits(*edit))
        assert explorer.text.splitlines()[-1].strip().startswith("no number ")  # the answer
        await explorer.go(TEXT)
        await explorer.shown("no number")
        assert "[PAD]" not in explorer.text
        assert "nan" not in explorer.text
