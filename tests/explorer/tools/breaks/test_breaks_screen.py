"""Breaking one thing at a time: what it makes of the answer, in the main screen too, and back."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.diagnosis.breaking import BREAKS
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.tools.breaks.screen import BreaksScreen
from tui_transformer.explorer.widgets.heat_map import MatrixPane
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.model.options import ModelOptions
from tui_transformer.session import other_sentences
from tui_transformer.session.answer_summary import answer as answer_of


async def go_to(explorer, name: str) -> None:
    """Go to a break, wherever in the list it is."""
    place = next(i for i, each in enumerate(BREAKS) if each.name == name)
    lines = explorer.app.screen.query_one(LineList)
    await explorer.keys("home")
    for _ in BREAKS:
        if lines.cursor == place:
            break
        await explorer.keys("down")
    await explorer.settled()
    assert lines.cursor == place, explorer.text


async def choose(explorer, name: str) -> None:
    """Go to a switch and press it."""
    await go_to(explorer, name)
    await explorer.press("enter")


def shown_lines(explorer) -> list[str]:
    return [" ".join(line.strip("│╭╰╮╯ ").split()) for line in explorer.text.split("\n")]


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_what_changes_the_answer_stands_first_and_what_does_not_says_so(size):
    async with exploring(size, model="copy") as explorer:
        await explorer.press("!")
        findings = explorer.app.screen.findings
        there = [at for at in findings.order if BREAKS[at].name in findings.there]
        sizes = [findings.effect(BREAKS[at], as_switched=True).size for at in there]
        assert len(sizes) == 12
        assert sizes == sorted(sizes, reverse=True)
        first = BREAKS[there[0]].title
        assert first in shown_lines(explorer)[3]
        await go_to(explorer, "naive-softmax")
        assert "no sentence found on which it matters, of 32 tried" in explorer.text
        await go_to(explorer, "keys-tiled")
        assert "Not here: its heads share no keys." in explorer.text


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_the_step_where_it_acts_is_shown_before_and_after_in_the_same_colours(size):
    async with exploring(size, model="question") as explorer:
        await explorer.press("!")
        await go_to(explorer, "causal-mask")
        before, after = (explorer.app.screen.query_one(f"#{name}", MatrixPane).cells for name in ("before", "after"))
        assert before._scale == after._scale
        assert np.isfinite(before._tile.values).all()
        assert np.isneginf(after._tile.values[np.triu_indices(9, 1)]).all()
        trace = explorer.session.with_breaks("causal-mask").trace
        head = before._view.head
        assert np.array_equal(after._tile.values, trace["encoder.0.self_attention.masked"][head])
        assert "question 99.9 % → statement" in explorer.text


async def test_a_screen_that_was_left_holds_no_values_of_other_sentences():
    async with exploring(MEDIUM, model="copy") as explorer:
        await explorer.press("!")
        await go_to(explorer, "naive-softmax")
        screen = explorer.app.screen
        examples = weakref.ref(screen.findings.examples)
        assert screen.findings.effects
        await explorer.press("escape")
        gc.collect()
        assert examples() is None
        assert not screen.findings.effects


async def test_a_slider_is_moved_and_the_answer_follows():
    async with exploring(NARROW, model="copy") as explorer:
        await explorer.press("!")
        await go_to(explorer, "no-scale")
        screen = explorer.app.screen
        await explorer.keys(*["left"] * 38)
        await explorer.settled()
        made = screen.findings.made["no-scale"]
        assert made.number == 0.2
        assert "scores ÷ √d_k × 0.2 " in explorer.text
        answer = screen.findings.effects[str(made)]
        expected = answer_of(explorer.session.with_breaks("no-scale=0.2"))
        assert str(answer.becomes) == str(expected)
        assert f"the answer: k 80.2 % → {expected}" in explorer.text
        await explorer.press("+", "-", *["left"] * 9)
        assert screen.findings.made["no-scale"].number == 0.0
        assert "●" in explorer.text
        await explorer.press("enter")
        assert explorer.session.breaks == ("no-scale=0",)
        await explorer.press("right", "enter")  # the same with another number takes its place
        assert explorer.session.breaks == ("no-scale=0.1",)
        await explorer.press("escape")
        assert "broken: scores ÷ √d_k × 0.1" in explorer.text


async def test_the_smallest_change_that_turns_the_answer_does_and_a_smaller_one_does_not():
    async with exploring(WIDE, model="copy") as explorer:
        await explorer.press("!")
        await go_to(explorer, "no-residual")
        turn = explorer.app.screen.findings.turns["no-residual"]
        assert f"what sublayers add to × {turn.number:g} turns the answer from k to" in explorer.text
        assert "╳" in explorer.text
        own = answer_of(explorer.session).name
        assert answer_of(explorer.session.with_breaks(f"no-residual={turn.number}")).name != own
        nearer = turn.number + 0.02 * (1 if turn.number < 1 else -1)
        assert answer_of(explorer.session.with_breaks(f"no-residual={nearer}")).name == own
        await go_to(explorer, "temperature")
        assert "nothing from 0.1 to 4 turns the answer: k with all 39 numbers tried" in explorer.text


async def test_a_head_is_chosen_and_left_out():
    async with exploring(WIDE, model="copy") as explorer:
        await explorer.press("!")
        await go_to(explorer, "head")
        place = explorer.app.screen.findings.made["head"].place
        assert place.startswith("decoder.1.self_attention:")
        await explorer.press("}")
        assert explorer.app.screen.findings.made["head"].place == place.replace("decoder.1", "decoder.0")
        await explorer.press("]", "enter")
        number = (int(place[-1]) + 1) % 4
        assert explorer.session.breaks == (f"head:decoder.0.self_attention:{number}",)
        assert not explorer.session.trace["decoder.0.self_attention.context"][number].any()
        assert explorer.session.trace["decoder.0.self_attention.context"][(number + 1) % 4].any()


async def test_the_sentence_on_which_it_matters_is_offered_and_taken(monkeypatch):
    monkeypatch.setattr(other_sentences, "MOST", 4)
    async with exploring(WIDE, model="dates") as explorer:
        await explorer.press("!")
        await go_to(explorer, "no-positions")
        elsewhere = explorer.app.screen.findings.elsewhere["no-positions"]
        text, target = elsewhere.pair
        assert f"nothing here · matters on “{text} → {target}”" in explorer.text
        await explorer.press("slash")
        assert explorer.focused_input.value == text
        await explorer.press("enter")
        assert (explorer.session.text, explorer.session.decoder_text) == (text, target)
        findings = explorer.app.screen.findings
        effect = findings.effects["no-positions"]
        assert str(effect.becomes) == str(elsewhere.becomes)
        assert effect.turns
        await explorer.press("u")
        assert explorer.session.text == "the 3rd of May 2021"
        assert explorer.app.screen.findings is not findings


@pytest.mark.parametrize(
    "options", [{"model": "attention"}, {"model": "encoder-decoder"}, {"model": "decoder", "ids": [4]}]
)
async def test_other_models_are_broken_too(options):
    async with exploring(NARROW, **options) as explorer:
        await explorer.press("!")
        findings = explorer.app.screen.findings
        assert findings.tried == len(findings.there) > 4
        assert not findings.failed
        await explorer.press("left", "right", "down", "left", "enter", "escape")
        assert explorer.session.breaks


async def test_escape_ends_the_search_before_it_leaves():
    async with exploring(NARROW, model="story") as explorer:
        await explorer.keys("!")
        await explorer.until(lambda: isinstance(explorer.app.screen, BreaksScreen))
        screen = explorer.app.screen
        await explorer.keys("escape")
        await explorer.settled()
        assert explorer.app.screen is screen
        assert " · ended" in explorer.text
        await explorer.press("escape")
        assert explorer.app.screen is explorer.main


async def test_what_becomes_of_the_answer_is_read_whole_on_a_small_terminal():
    async with exploring(SMALL, model="question") as explorer:
        await explorer.press("!")
        await go_to(explorer, "no-scale")
        assert "the answer: question 99.91 % → 99.90 %" in explorer.text


async def test_a_break_is_shown_beside_what_it_would_be_and_undone():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("!")
        await choose(explorer, "causal-mask")
        assert "[■]" in explorer.text
        await explorer.press("escape")
        assert "broken: causal mask where there is none" in explorer.text
        await explorer.press("D")
        assert explorer.stop == "encoder.0.self_attention.masked"
        assert "unbroken" in explorer.text
        await explorer.press("u")
        assert explorer.session.breaks == ()
        assert "broken:" not in explorer.text.split("\n")[0]


async def test_a_second_press_mends_and_what_is_not_there_is_refused():
    async with exploring(NARROW, model="question") as explorer:
        await explorer.press("!")
        await choose(explorer, "softmax-axis")
        assert explorer.session.breaks == ("softmax-axis",)
        await explorer.press("enter")
        assert explorer.session.breaks == ()
        await choose(explorer, "keys-tiled")
        assert explorer.session.breaks == ()
        assert "nothing to break" in explorer.messages[-1]


async def test_u_takes_back_at_once_what_was_switched_and_the_key_line_says_so():
    async with exploring(WIDE, model="question") as explorer:
        whole = explorer.session
        await explorer.press("!")
        await choose(explorer, "no-scale")
        await choose(explorer, "causal-mask")
        assert "u undo" in explorer.text.splitlines()[-1]
        await explorer.press("u")
        assert explorer.session.breaks == ("no-scale",)
        assert explorer.text.count("[■]") == 1
        await explorer.shown("Break it · 1 broken")
        await explorer.press("u")
        assert explorer.session is whole
        assert "[■]" not in explorer.text
        await explorer.press("u")
        assert "nothing to undo" in explorer.messages[-1]
        await explorer.press("U")
        assert explorer.session.breaks == ("no-scale",)
        await explorer.press("escape", "u")
        assert explorer.session is whole


async def test_u_takes_no_change_back_that_was_made_elsewhere():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("slash")
        await explorer.answer("did the cat sleep")
        await explorer.press("!", "u")
        assert explorer.session.text == "did the cat sleep"
        await choose(explorer, "no-scale")
        explorer.parts.port.change(explorer.session.with_text("the cat did sleep"))  # comes late
        await explorer.press("u")
        assert (explorer.session.text, explorer.session.breaks) == ("the cat did sleep", ())


async def test_a_head_that_the_model_does_not_have_which_came_meanwhile_is_not_broken_in_it():
    async with exploring(WIDE, model="copy") as explorer:
        await explorer.press("!")
        await go_to(explorer, "head")
        place = explorer.app.screen.findings.made["head"].place
        question = open_session(ModelOptions(model="question"))
        explorer.parts.port.change(question)  # comes late
        await explorer.press("enter")
        assert explorer.app.screen.session.breaks == (f"head:{place}",)
        assert explorer.session is question
        assert explorer.messages[-1].startswith("here alone, as the main screen is at another model: there is no head")


async def test_gradients_of_a_broken_model_are_refused():
    async with exploring(SMALL, model="question") as explorer:
        await explorer.press("!")
        await choose(explorer, "no-scale")
        await explorer.press("escape", "b")
        assert not explorer.session.backward
        assert "broken" in explorer.messages[-1]


async def test_every_step_of_a_broken_model_is_shown():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("!")
        await choose(explorer, "norm-place")
        await explorer.press("escape")
        for _ in range(30):
            await explorer.press("space")
        assert explorer.stop == "text"
