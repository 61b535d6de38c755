"""The whole on the screen: opens where there is room, follows the position, and is gone through by keys and clicks."""

from __future__ import annotations

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, Explorer, exploring
from reference import REFERENCES

from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.pane_fit import lines_below
from tui_transformer.session.position import Position
from tui_transformer.session.whole.layout import place_bands

WEIGHTS = "encoder.0.self_attention.weights"
QUERY = "encoder.0.self_attention.query"
LARGE = (120, 36)


def pane(explorer: Explorer) -> WholePane:
    return explorer.main.query_one(WholePane)


@pytest.mark.parametrize("size", [WIDE, LARGE, MEDIUM, SMALL])
async def test_the_whole_opens_where_there_is_room_and_is_one_key_away_elsewhere(size):
    opens = size in (WIDE, LARGE)
    async with exploring(size, model="question", whole=None) as explorer:
        assert pane(explorer).display is opens
        await explorer.press("0")
        assert pane(explorer).display is not opens
        await explorer.press("0")
        assert pane(explorer).display is opens


async def test_every_band_is_in_view_with_the_matrix_and_its_cell():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        # a click goes to a box, its head and its row
        await explorer.click("softmax, all heads", 11, 2)
        assert explorer.stop == WEIGHTS
        assert (explorer.position.place.head, explorer.position.place.row) == (1, 2)
        explorer.parts.navigation.go_to_cell(head=0, row=0, column=0)
        await explorer.settled()
        for title in (
            "From words to vectors",
            "Self-attention · layer 0",
            "Feed-forward · layer 0",
            "Answer",
            "token     ID",
            "vocabulary 123",
            "Q 9 × 8",
            "softmax, all heads",
            "head 3",
            "99.9",
            "e^(s − max)",
        ):
            assert title in explorer.text
        # backward the arrows are turned round
        forward = explorer.text.count("▸")
        await explorer.press("b")
        await explorer.shown("∂ softmax")
        assert explorer.text.count("◂") > forward / 2
        assert "▸" not in explorer.text
        await explorer.press("b")
        await explorer.shown("softmax, all heads")
        assert "◂" not in explorer.text


async def test_steps_and_arrows_move_the_frame():
    async with exploring(WIDE, model="question", whole=True) as explorer:
        await explorer.press("0", "0")
        async for _ in explorer.sizes(WIDE, NARROW):
            await explorer.go(QUERY)
            assert "▐" in explorer.text
            await explorer.press("right")
            assert explorer.stop == "encoder.0.self_attention.key"
            await explorer.press("left", "left")
            assert explorer.stop == "encoder.0.self_attention.norm"
            await explorer.press("down")
            assert explorer.stop.startswith("encoder.0.feed_forward")
            await explorer.press("up", "up")
            assert explorer.stop == "tokens"
            await explorer.press("enter")
            assert "Look inside" in explorer.text
            await explorer.press("escape")
            assert explorer.view.active == "whole"


async def test_sixteen_tokens_leave_room_for_every_band_above_their_matrix():
    async with exploring(WIDE, model="story", whole=None) as explorer:
        assert len(explorer.session.encoding.tokens) == 16
        await explorer.go("decoder.0.self_attention.weights")
        titles = (
            "From words to vectors",
            "Self-attention · layer 0",
            "Feed-forward · layer 0",
            "Answer",
            "vocabulary 512",
        )
        assert all(title in explorer.text for title in titles)
        assert "␣lived   .03" in explorer.text


async def test_all_bands_are_in_view_at_first_however_long_the_sentence_is():
    text = "the old sailor hid the map"
    async with exploring(LARGE, model=str(REFERENCES / "gpt2"), text=text, whole=None) as explorer:
        assert len(explorer.session.encoding.tokens) == 18
        bands = ("From words to vectors", "Self-attention · layer 0", "Feed-forward · layer 0", "Answer")
        assert all(band in explorer.text for band in bands)
        assert "s, after a space     in the sentence" in explorer.text
        await explorer.press("space")
        assert all(f" {token.id} " in explorer.text for token in explorer.session.encoding.tokens)
        await explorer.press("backspace")
        assert all(band in explorer.text for band in bands)


async def test_a_narrow_band_says_what_a_column_is():
    async with exploring(WIDE, model=str(REFERENCES / "t5"), whole=None) as explorer:
        assert "Encoder norm ╮" in explorer.text
        assert "╰ largest of 3 ─╯" in explorer.text


@pytest.mark.parametrize("tokens", [20, 26])
def test_all_bands_share_the_room_that_the_matrix_of_a_long_sentence_leaves(tokens):
    session = open_session(ModelOptions("story"), None, tuple(range(10, 10 + tokens)))
    height = 43 - lines_below(tokens, 45, 43, first=True)
    for stop in ("tokens", WEIGHTS.replace("encoder", "decoder"), "output.probabilities"):
        placed = place_bands(session, Position(stop), 160, height)
        assert len({each.top for each in placed}) == 3
        assert max(each.top + each.lines for each in placed) <= height
        assert "output" in {each.band.name for each in placed}


def test_a_short_target_leaves_its_lines_to_the_bands_after_it():
    session = open_session(ModelOptions(str(REFERENCES / "bart")), None, None)
    assert [len(each.tokens) for each in session.sequences.values()] == [22, 1]
    placed = place_bands(session, Position("decoder.0.cross_attention.weights"), 160, 20)
    rows = {each.band.name: each.rows for each in placed}
    assert rows["decoder.0.self_attention"] == 1
    assert rows["output"] >= 4
    assert rows["decoder.0.cross_attention"] == 4
    lower = place_bands(session, Position("decoder.0.cross_attention.weights"), 160, 18)
    assert [each.band for each in lower] == [each.band for each in placed]


async def test_tab_and_digits_go_from_the_whole_to_other_panes():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        seen = [explorer.view.active]
        for _ in range(3):
            await explorer.press("tab")
            seen.append(explorer.view.active)
        assert seen == ["whole", "matrix", "cell", "whole"]
        await explorer.press("2")
        assert explorer.view.active == "steps"
        assert not pane(explorer).display


async def test_a_step_reads_only_what_was_not_read_before(monkeypatch):
    read = []
    window = Trace.window
    monkeypatch.setattr(Trace, "window", lambda trace, name, *rest: read.append(name) or window(trace, name, *rest))
    async with exploring(WIDE, model="question", whole=None, at=QUERY) as explorer:
        read.clear()
        await explorer.press("space")
        assert not [name for name in read if name.startswith("encoder.0.feed_forward")]
        # a row of the vocabulary is no row of the sentence
        last = explorer.session.model.vocabulary.size - 1
        for stop in ("embedding.tokens.weight", "vocabulary"):
            await explorer.press("0")
            explorer.parts.navigation.go_into(stop, None, last)
            await explorer.press("0")
            assert "vocabulary 123" in explorer.text
            assert explorer.position.place.row == last


@pytest.mark.parametrize(
    ("model", "size"),
    [("attention", NARROW), ("dates", NARROW), ("copy", WIDE), ("story", NARROW), ("encoder-decoder", WIDE)],
)
async def test_the_whole_of_every_model_can_be_stepped_through(model, size):
    async with exploring(size, model=model, whole=True) as explorer:
        await explorer.keys("0", "0", *["space"] * 12)
        await explorer.press("}", "right", "down", "]")
        assert pane(explorer).display
