"""The command palette lists what can be done on the screen that is shown."""

from __future__ import annotations

import re

import pytest
from driving import NARROW, WIDE, exploring

from tui_transformer.explorer.main.enabled_actions import refused_anywhere
from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.actions.tools import TOOLS
from tui_transformer.explorer.shell.keymap import without
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.session.session import TEXT


def commands(explorer):
    return {each.title: each for each in explorer.app.get_system_commands(explorer.app.screen)}


async def test_the_main_screen_has_all_its_actions_and_those_of_the_pane():
    async with exploring(NARROW) as explorer:
        left_out = refused_anywhere(explorer.session)
        there = [action.title for action in ACTIONS if action.id not in left_out]
        assert len(there) >= len(ACTIONS) - 4
        assert list(commands(explorer))[: len(there)] == there
        assert commands(explorer)["Next head"].help == "key: ]"
        await explorer.go(TEXT)
        await explorer.press("4")
        explorer.app.call_later(commands(explorer)["Lower temperature"].callback)
        await explorer.shown("T = 0.9")


WRITES = ("story", "dates")


@pytest.mark.parametrize("model", ["question", "encoder", *WRITES])
async def test_writing_is_offered_only_where_the_model_writes(model):
    async with exploring((200, 60), model=model, whole=None) as explorer:
        writes = model in WRITES
        listed = {each.help for each in explorer.app.get_system_commands(explorer.app.screen)}
        assert ("key: W" in listed) == writes
        await explorer.press("space")
        assert ("W write" in explorer.text.splitlines()[-1]) == writes
        await explorer.press("question_mark", "enter", "G")
        assert ("W: write on" in explorer.text) == writes
        assert "C: exercises" in explorer.text


async def test_what_a_model_never_does_is_in_neither_palette_nor_help():
    async with exploring(WIDE, model="attention") as explorer:
        left_out = refused_anywhere(explorer.session)
        assert {"sentence.edit", "vocabulary.open", "target.edit", "generate", "backward"} <= left_out.keys()
        assert not {action.title for action in ACTIONS if action.id in left_out} & set(commands(explorer))
        page = without(explorer.main.help_page, left_out)
        assert "edit the sentence" not in page
        assert "next step" in page


def test_a_line_of_help_goes_where_all_its_keys_do():
    undo, write, go = "- `{key:undo}`, `{key:redo}`: undo, redo", "- `{key:generate}`: write", "- `{key:go}`: go"
    page = "\n".join([undo, write, go, "`{key:generate}` or W: text"])
    assert without(page, {"undo", "generate", "go"}) == "\n".join([undo, "`{key:generate}` or W: text"])
    assert without(page, {"undo", "redo"}) == "\n".join([write, go, "`{key:generate}` or W: text"])


TITLES = {
    "H": "Order by the next measure",
    "K": "All heads, the layer, the head",
    "L": "What is shown here",
    "R": "Up to the next layer",
    "A": "Heads, layers, positions, neurons",
}


async def test_a_screen_of_its_own_has_its_actions_and_not_those_of_the_main_one():
    async with exploring(NARROW) as explorer:
        for key, title in TITLES.items():
            await explorer.press(key)
            listed = commands(explorer)
            assert "Next step" not in listed
            assert title in listed
            explorer.app.call_later(listed["Back to the main screen"].callback)
            await explorer.until(lambda: explorer.app.screen is explorer.main)


async def test_the_screen_that_writes_has_its_actions():
    async with exploring(NARROW, model="decoder") as explorer:
        await explorer.press("W")
        titles = list(dict.fromkeys(action.title for action in TOOLS["generate"] if action.id))
        assert list(commands(explorer))[: len(titles)] == titles
        explorer.app.call_later(commands(explorer)["Write the next token, or go on to it"].callback)
        await explorer.shown("1 written")


async def test_no_action_without_a_key_has_its_name_for_one():
    async with exploring(NARROW, model="question", preferences=Preferences()) as explorer:
        given = commands(explorer)
        assert given["Ablate this head (mean)"].help == given["Ablate this position (zero)"].help == "no key"
        assert given["Ablate this head (zero)"].help == "key: a a"
        assert not [each.help for each in given.values() if re.fullmatch(r"key: [\w-]+\.[\w.-]+", each.help)]
