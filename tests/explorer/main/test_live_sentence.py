"""A sentence while it is edited: everything follows every letter, late work never shows, and esc brings all back."""

from __future__ import annotations

import re
import threading

import numpy as np
from driving import MEDIUM, NARROW, SMALL, WEIGHTS, WIDE, exploring

from tests.explorer.walks.models import LONG, MODELS
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.tools import sentence
from tui_transformer.explorer.tools.heads import HeadsScreen
from tui_transformer.explorer.tools.links import ArcsScreen
from tui_transformer.explorer.tools.sentence import STALE, BothSentences, change_bar, sentences
from tui_transformer.explorer.widgets.tile_grid import TileGrid
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.answer_summary import answer
from tui_transformer.session.pane_fit import lines_edited
from tui_transformer.session.sentences import SOURCE
from tui_transformer.session.view_state import Size


def lines_of(explorer) -> list[str]:
    return [" ".join(line.strip("│ ").split()) for line in explorer.text.split("\n")]


async def test_every_letter_shows_what_a_fresh_explorer_shows_of_the_sentence_and_escape_brings_all_back():
    async with exploring(WIDE, model="question", whole=None, at=WEIGHTS) as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW, (60, 20)):
            await explorer.press("slash", *["backspace"] * 5)
            for key in ("h", "a", "t"):
                await explorer.press(key)
                text = explorer.app.screen.query_one("Input").value
                assert explorer.session.text == text
                fresh = explorer.session.with_text(text)
                assert np.array_equal(explorer.scene.view.window(range(8), range(8)), fresh.trace[WEIGHTS][0][:8, :8])
                lines = lines_of(explorer)
                assert next(line for line in lines if line.startswith("was ")).startswith("was where did the old")
                assert any(line.startswith("now where did the old") for line in lines)
                now = answer(fresh)
                assert any(f"→ {str(now).partition(' ')[2]}" in line for line in lines if line.startswith(now.name))
            await explorer.press("enter")
            assert explorer.session.text == text
            assert explorer.parts.explored.view.edited == 0
            await explorer.press("u")
            assert explorer.session.text == "where did the old sailor hide the map ?"
        # escape
        await explorer.press("right")
        session, position = explorer.session, explorer.position
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW, SMALL):
            before = explorer.text
            await explorer.press("slash", *" 12 the", "escape")
            assert explorer.session is session
            assert explorer.position == position
            assert explorer.text == before


async def test_what_cannot_be_read_dims_what_is_there_and_says_why():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        await explorer.press("slash")
        await explorer.write("")
        await explorer.settled()
        assert "the sentence has no tokens" in explorer.text
        assert not re.search(r"was |now ", explorer.text)  # without colours what is old would look new
        assert explorer.main.query_one("#whole").has_class(STALE)
        await explorer.press("m", "a", "p")
        assert "the sentence has no tokens" not in explorer.text
        assert not explorer.main.query(f".{STALE}")
        assert lines_of(explorer)[4].split() == ["now", *["·"] * 7, "map", "·"]
        await explorer.answer("")
        assert isinstance(explorer.app.screen, PromptScreen)
        # words that the model does not know are read
        await explorer.write("xyzzy")
        await explorer.settled()
        assert "now xyzzy?" in " ".join(lines_of(explorer))
        assert "statement" in explorer.text
        await explorer.write("")
        await explorer.press("escape")
        assert not explorer.main.query(f".{STALE}")


async def test_an_older_pass_that_comes_late_never_shows(monkeypatch):
    begun, go_on, real = threading.Event(), threading.Event(), sentence.change_of

    def slow(before, after, report):
        if after.text.endswith("x"):
            begun.set()
            assert go_on.wait(30)
        return real(before, after, report)

    text = "Once there was a small girl called Mira, who lived in"
    async with exploring(WIDE, model="story", text=text) as explorer:
        await explorer.press("slash")
        monkeypatch.setattr(sentence, "change_of", slow)
        await explorer.keys("x")
        await explorer.until(begun.is_set)
        await explorer.keys("backspace", "backspace")
        go_on.set()
        await explorer.settled()
        both = explorer.app.screen.query_one(BothSentences)
        assert both._known.after is both.after is explorer.session
        assert explorer.session.text == text[:-1]


async def test_what_is_not_ready_is_dimmed_and_letters_do_not_wait():
    async with exploring(WIDE, session=MODELS["heads"](), whole=None) as explorer:
        await explorer.go("encoder.5.self_attention.weights")
        await explorer.press("slash")
        matrix = explorer.scene.view
        async with explorer.waiting():
            await explorer.keys("x", "y")
            assert explorer.app.screen.query_one("Input").value == f"{LONG}xy"
            await explorer.until(lambda: explorer.main.query_one("#pair").has_class(STALE))
            assert explorer.session.text == f"{LONG}xy"
            assert explorer.parts.explored.step is None
        assert not explorer.main.query(f".{STALE}")
        assert explorer.scene.view is not matrix
        assert any(line.endswith("! xy?") for line in lines_of(explorer))


async def test_arcs_follow_every_letter():
    async with exploring(WIDE, model="question") as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.press("Q", "slash", *" a")
            arcs = explorer.app.screen_stack[-2]
            assert isinstance(arcs, ArcsScreen)
            assert arcs.session.text == "where did the old sailor hide the map ? a"
            assert np.array_equal(arcs.weights, arcs.session.trace[arcs.wanted.step.name][arcs.wanted.head])
            assert "a @9" in explorer.text
            assert "now where" in " ".join(lines_of(explorer))
            await explorer.press("escape")
            assert explorer.app.screen is arcs
            assert arcs.session is explorer.session
            assert "a @9" not in explorer.text
            await explorer.press("escape")
        await explorer.press("Q", "slash", *" b", "enter", "escape")
        assert explorer.session.text == "where did the old sailor hide the map ? b"
        await explorer.press("u")
        assert explorer.session.text == "where did the old sailor hide the map ?"


async def test_arcs_that_are_late_stay_as_they_were_dimmed():
    async with exploring(MEDIUM, session=MODELS["heads"](), at="encoder.5.self_attention.weights") as explorer:
        await explorer.press("Q", "slash")
        arcs = explorer.app.screen_stack[-2]
        async with explorer.waiting():
            text = " ".join(LONG.split()[:24])
            await explorer.write(text)
            await explorer.until(lambda: arcs.session.text == text)
            assert arcs.weights is None
            assert arcs.query_one("#overview-content").has_class(STALE)
            assert arcs.arcs.extent == (32, 1)
        assert not arcs.query_one("#overview-content").has_class(STALE)
        assert arcs.arcs.extent == (24, 1)


async def test_heads_follow_every_letter():
    async with exploring(WIDE, model="story", text="The fox") as explorer:
        await explorer.press("H", "slash", *" ran")
        heads = explorer.app.screen_stack[-2]
        assert isinstance(heads, HeadsScreen)
        assert heads.ordered.measured.trace is heads.session.trace
        assert not heads.query_one("#overview-content").has_class(STALE)
        picture = heads.query_one(TileGrid)._tiles.picture(0, 64)
        assert picture.shape == (len(heads.session.encoding.tokens),) * 2
        await explorer.press("escape")
        assert heads.ordered.measured.trace is explorer.session.trace


async def test_of_a_model_of_sentences_it_is_said_how_far_the_vector_moves():
    async with exploring(WIDE, session=MODELS["sentence"](), whole=None) as explorer:
        await explorer.press("slash")
        await explorer.write("2, 7, 3")
        await explorer.settled()
        assert "the vector moves by" in explorer.text


async def test_of_an_encoder_decoder_the_target_is_edited_as_well():
    async with exploring(WIDE, model="dates", whole=None) as explorer:
        await explorer.press("T", "backspace")
        assert explorer.session.decoder_text == "2021"
        assert "was [BOS] 2 0 2 1 -" in lines_of(explorer)
        assert "0 100.0 % → - 100.0 %" in explorer.text
        await explorer.press("escape")
        assert explorer.session.decoder_text == "2021-"


def test_a_bar_has_what_stays_and_what_came_or_went():
    assert change_bar(0.8, 0.3, 10).plain == "███░░░░░  "
    assert change_bar(0.3, 0.8, 10).plain == "███▓▓▓▓▓  "
    assert change_bar(float("inf"), 0.0, 4).plain == "░░░░"


def test_of_long_sentences_the_last_change_is_in_view():
    before = open_session(ModelOptions("question"), "the map " * 30, None)
    for changed, shown in ((before.text + "sailor", "sailor"), (before.text.replace("the", "old", 1), "old")):
        was, now = sentences(before, before.with_text(changed), SOURCE, 60)
        assert shown in now.plain
        assert max(was.cell_length, now.cell_length) <= 60


def test_a_smaller_screen_has_no_more_lines_of_it():
    lines = [lines_edited(Size(100, height)) for height in range(1, 60)]
    assert lines == sorted(lines)
    assert lines_edited(Size(40, 45)) == lines_edited(Size(100, 12))
