"""Breaking one thing at a time: what it makes of the answer, in the main screen too, and back."""

from __future__ import annotations

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

from tui_transformer.diagnosis.breaking import BREAKS
from tui_transformer.explorer.widgets.line_list import LineList


async def choose(explorer, name: str) -> None:
    """Go to a switch and press it."""
    place = next(i for i, each in enumerate(BREAKS) if each.name == name)
    lines = explorer.app.screen.query_one(LineList)
    await explorer.press("home", *["down"] * place)
    assert lines.cursor == place
    await explorer.press("enter")


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_every_switch_says_what_it_makes_of_the_answer(size):
    async with exploring(size, model="question") as explorer:
        await explorer.press("!")
        await explorer.shown("Break it", "without ÷ √d_k", "question 99.9 % → ")
        assert "not here: its heads share no keys" in explorer.text
        assert "encoder.0.self_attention.scaled[" in explorer.text
        lines = [" ".join(line.strip("│ ").split()) for line in explorer.text.split("\n")]
        assert "the softmax puts almost all on one key" in " ".join(lines)
        assert lines[lines.index("the answer before after") + 1].startswith("question 99.91 % ")
        if size == WIDE:
            place = next(i for i, line in enumerate(lines) if line.startswith("Attention weights, head "))
            assert [line.partition(" ")[0] for line in lines[place + 2 : place + 4]] == ["before", "after"]
            assert lines[place + 2].split()[1:] != lines[place + 3].split()[1:]


async def test_what_becomes_of_the_answer_is_read_whole_on_a_small_terminal():
    async with exploring(SMALL, model="question") as explorer:
        await explorer.press("!")
        await explorer.until(lambda: "6 of 6 tried" in explorer.text)
        assert "question 99.91 % → 99.90 %" in explorer.text


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
