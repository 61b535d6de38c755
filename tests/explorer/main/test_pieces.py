"""Pieces of words: what they stand for and what they cover, beside the sentence and in the vocabulary."""

from __future__ import annotations

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from reference import REFERENCES
from textual import events

from tui_transformer.explorer.main.panes.sentence import SentencePane

TEXT = "The waves 😊!"
SAYS = {
    "gpt2": {1: "␣wa 291: wa, after a space · covers “ wa” at 3–6", 4: "ĺ 247: byte 98 · covers “😊” at 10–11"},
    "bert": {0: "[CLS] 2 · added", 3: "##ves 132: ves, inside a word · covers “ves” at 6–9"},
    "t5": {3: "␣wa 32: wa, after a space · covers “ wa” at 3–6"},
}


def on_screen(text: str) -> str:
    """Without the cells that a wide character takes twice."""
    return " ".join(text.split())


@pytest.mark.parametrize("family", SAYS)
async def test_the_piece_under_the_cursor_is_explained(family):
    async with exploring(WIDE, model=str(REFERENCES / family), text=TEXT, at="embedding.tokens") as explorer:
        for row, said in SAYS[family].items():
            await explorer.press(*["down"] * (row - explorer.position.place.row))
            assert said in on_screen(explorer.text)


async def test_whole_words_need_no_explanation():
    async with exploring(WIDE, at="embedding.tokens") as explorer:
        assert "covers" not in explorer.text


async def test_characters_that_several_pieces_share_are_written_once():
    async with exploring(NARROW, model=str(REFERENCES / "gpt2"), text="naïve 😊!") as explorer:
        async for _ in explorer.sizes(NARROW, MEDIUM):
            assert "naïve 😊!" in on_screen(explorer.text)


async def test_the_vocabulary_explains_its_pieces():
    async with exploring(WIDE, model=str(REFERENCES / "bert"), text=TEXT) as explorer:
        await explorer.press("ctrl+f", *"ves", "enter")
        async for _ in explorer.sizes(WIDE, NARROW, SMALL):
            assert "##ves             ves, ins" in explorer.text


async def test_a_word_outside_the_vocabulary_is_drawn_as_what_stands_for_it_and_counted():
    async with exploring((100, 30), model="question", text="where did the zebra hide the giraffe ?") as explorer:
        text = explorer.text
        assert "[UNK] zebra 1 @3" in text
        assert "2 unknown words" in text


async def test_a_part_of_the_sentence_is_selected_with_the_mouse_and_seen_as_such() -> None:
    async with exploring(WIDE, model="question") as explorer:
        pane = explorer.main.query_one(SentencePane).region
        left, top = pane.x + 2, pane.y + 1
        before = strip_at(explorer, top)
        for kind, to in ((events.MouseDown, 0), (events.MouseMove, 9), (events.MouseUp, 9)):
            explorer.app.post_message(kind(None, left + to, top, 0, 0, 1, False, False, False))
            await explorer.handled()
        assert explorer.app.screen.get_selected_text() == "where did "
        both = before, strip_at(explorer, top)
        grounds = [{part.style.bgcolor for part in line.crop(left, left + 9)} for line in both]
        assert grounds[0].isdisjoint(grounds[1])


def strip_at(explorer, line: int):
    return explorer.app.screen._compositor.render_strips()[line]


async def test_the_token_that_is_clicked_behind_accents_and_parts_of_an_emoji_is_the_one_that_stands_there() -> None:
    async with exploring(
        WIDE, model="question", text="👍🏽 the me\u0301me\u0301 fox the map", at="embedding.output"
    ) as explorer:
        pane = explorer.main.query_one(SentencePane)
        left, top = pane.content_region.offset
        for column, row in ((3, 0), (12, 2), (16, 3), (20, 4), (7, 1)):
            assert pane.render_line(0).text.startswith("👍🏽 the me\u0301me\u0301 fox the map")
            await explorer.pilot.click(offset=(left + column, top))
            await explorer.settled()
            assert explorer.position.place.row == row, column
