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
    await explorer.press("home")
    explorer.send(*["down"] * explorer.app.screen.findings.order.index(place))
    await explorer.handled()
    await explorer.settled()
    assert lines.cursor == place, explorer.text


async def choose(explorer, name: str) -> None:
    await go_to(explorer, name)
    await explorer.press("enter")


async def test_what_changes_the_answer_stands_first_and_what_does_not_says_so():
    async with exploring(WIDE, model="copy") as explorer:
        await explorer.press("!")
        findings = explorer.app.screen.findings
        there = [at for at in findings.order if BREAKS[at].name in findings.there]
        sizes = [findings.effect(BREAKS[at], as_switched=True).size for at in there]
        assert len(sizes) > 10
        assert sizes == sorted(sizes, reverse=True)
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await go_to(explorer, BREAKS[there[0]].name)
            assert BREAKS[there[0]].title in explorer.text.split("\n")[3]
            await go_to(explorer, "naive-softmax")
            assert "no sentence found on which it matters, of 32 tried" in explorer.text
            await go_to(explorer, "keys-tiled")
            assert "Not here: its heads share no keys." in explorer.text
        # a screen that was left holds no values of other sentences
        examples = weakref.ref(findings.examples)
        screen = explorer.app.screen
        assert screen.findings.effects
        del findings
        await explorer.press("escape")
        gc.collect()
        assert examples() is None
        assert not screen.findings.effects


async def test_the_step_where_it_acts_is_shown_before_and_after_in_the_same_colours():
    async with exploring(WIDE, model="question") as explorer:
        trace = explorer.session.with_breaks("causal-mask").trace
        await explorer.press("!")
        await go_to(explorer, "causal-mask")
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            panes = (explorer.app.screen.query_one(f"#{name}", MatrixPane) for name in ("before", "after"))
            before, after = (pane.cells for pane in panes)
            assert before._scale == after._scale
            assert np.isfinite(before._tile.values).all()
            assert np.isneginf(after._tile.values[np.triu_indices(9, 1)]).all()
            assert np.array_equal(after._tile.values, trace["encoder.0.self_attention.masked"][before._view.head])
            assert "question 99.9 % → statement" in explorer.text
        # on a small terminal what becomes of the answer is read whole
        await explorer.resize(*SMALL)
        await go_to(explorer, "no-scale")
        assert "the answer: question 99.91 % → 99.90 %" in explorer.text


async def test_a_number_has_a_smallest_change_that_turns_the_answer_and_a_slider():
    async with exploring(WIDE, model="copy") as explorer:
        await explorer.press("!")
        await go_to(explorer, "no-residual")
        turn = explorer.app.screen.findings.turns["no-residual"]
        assert f"what sublayers add to × {turn.number:g} turns the answer from k to" in explorer.text
        assert "╳" in explorer.text
        assert answer_of(explorer.session.with_breaks(f"no-residual={turn.number}")).name == turn.becomes.name
        await go_to(explorer, "temperature")
        assert "nothing from 0.1 to 4 turns the answer: k with all 39 numbers tried" in explorer.text
        # the slider is moved and the answer follows
        await explorer.resize(*NARROW)
        await go_to(explorer, "no-scale")
        findings = explorer.app.screen.findings
        explorer.send(*["left"] * 38)
        await explorer.handled()
        await explorer.settled()
        made = findings.made["no-scale"]
        assert made.number == 0.2
        assert "scores ÷ √d_k × 0.2 " in explorer.text
        expected = str(answer_of(explorer.session.with_breaks("no-scale=0.2")))
        assert str(findings.effects[str(made)].becomes) == expected
        assert f"the answer: k 80.2 % → {expected}" in explorer.text
        await explorer.press("+", "-", *["left"] * 9)
        assert findings.made["no-scale"].number == 0.0
        assert "●" in explorer.text
        await explorer.press("enter")
        assert explorer.session.breaks == ("no-scale=0",)
        await explorer.press("right", "enter")  # the same with another number takes its place
        assert explorer.session.breaks == ("no-scale=0.1",)
        await explorer.press("escape")
        assert "broken: scores ÷ √d_k × 0.1" in explorer.text


async def test_a_head_is_chosen_and_left_out_but_not_of_a_model_that_does_not_have_it():
    async with exploring(WIDE, model="copy") as explorer:
        await explorer.press("!")
        await go_to(explorer, "head")
        findings = explorer.app.screen.findings
        place = findings.made["head"].place
        assert place.startswith("decoder.1.self_attention:")
        await explorer.press("}")
        assert findings.made["head"].place == place.replace("decoder.1", "decoder.0")
        await explorer.press("]", "enter")
        number = (int(place[-1]) + 1) % 4
        left_out = f"head:decoder.0.self_attention:{number}"
        assert explorer.session.breaks == (left_out,)
        assert not explorer.session.trace["decoder.0.self_attention.context"][number].any()
        assert explorer.session.trace["decoder.0.self_attention.context"][(number + 1) % 4].any()
        # another model comes late
        await explorer.press("u")
        question = open_session(ModelOptions(model="question"))
        explorer.parts.port.change(question)
        await explorer.press("enter")
        assert explorer.app.screen.session.breaks == (left_out,)
        assert explorer.session is question
        assert explorer.messages[-1].startswith("here alone, as the main screen is at another model: there is no head")


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
        assert str(effect.becomes) == str(elsewhere.change.becomes)
        assert effect.turns
        await explorer.keys("u")
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
        await explorer.leave()


async def test_a_broken_model_is_shown_step_by_step_beside_what_it_would_be_without_gradients():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("!")
        await choose(explorer, "causal-mask")
        assert "[■]" in explorer.text
        await explorer.press("escape")
        assert "broken: causal mask where there is none" in explorer.text
        await explorer.press("b")
        assert not explorer.session.backward
        assert "broken" in explorer.messages[-1]
        await explorer.press("D")
        assert explorer.stop == "encoder.0.self_attention.masked"
        assert "unbroken" in explorer.text
        await explorer.press("u")
        assert explorer.session.breaks == ()
        assert "broken:" not in explorer.text.split("\n")[0]
        await explorer.press("!")
        await choose(explorer, "norm-place")
        await explorer.press("escape")
        await explorer.go("vocabulary")
        for stop in explorer.session.stops[1:]:
            await explorer.press("space")
            assert explorer.stop == stop


async def test_a_second_press_mends_and_what_is_not_there_is_refused_and_u_takes_back_what_was_switched_alone():
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
        explorer.app.screen.action_switch()  # there is nothing to mend
        await explorer.press("u")
        assert "nothing to undo" in explorer.messages[-1]
        await explorer.press("U")
        assert explorer.session.breaks == ("no-scale",)
        # a second press mends
        await choose(explorer, "softmax-axis")
        assert explorer.session.breaks == ("no-scale", "softmax-axis")
        await explorer.press("enter")
        assert explorer.session.breaks == ("no-scale",)
        await choose(explorer, "keys-tiled")
        assert explorer.session.breaks == ("no-scale",)
        assert "nothing to break" in explorer.messages[-1]
        # undone on the main screen too
        await explorer.press("escape", "u", "u", "u")
        assert explorer.session is whole
        # no change that was made elsewhere
        await explorer.prompt("slash", "did the cat sleep")
        await explorer.press("!", "u")
        assert explorer.session.text == "did the cat sleep"
        await choose(explorer, "no-scale")
        explorer.parts.port.change(explorer.session.with_text("the cat did sleep"))  # comes late
        await explorer.press("u")
        assert (explorer.session.text, explorer.session.breaks) == ("the cat did sleep", ())
