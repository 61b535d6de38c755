"""The command palette lists what can be done on the screen that is shown."""

from __future__ import annotations

import pytest
from driving import NARROW, exploring

from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.actions.tools import GENERATE
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import TEXT


def commands(explorer):
    return {each.title: each for each in explorer.app.get_system_commands(explorer.app.screen)}


async def test_the_main_screen_has_all_its_actions_and_those_of_the_pane():
    async with exploring(NARROW) as explorer:
        assert list(commands(explorer))[: len(ACTIONS)] == [action.title for action in ACTIONS]
        assert commands(explorer)["Next head"].help == "key: ]"
        explorer.parts.port.go(Position(TEXT))
        await explorer.press("4")
        explorer.app.call_later(commands(explorer)["Lower temperature"].callback)
        await explorer.shown("T = 0.9")


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("H", "Order by the next measure"),
        ("K", "All heads, the layer, the head"),
        ("L", "What is shown here"),
        ("R", "Up to the next layer"),
        ("A", "Heads, layers, positions, neurons"),
    ],
)
async def test_a_screen_of_its_own_has_its_actions_and_not_those_of_the_main_one(key, title):
    async with exploring(NARROW) as explorer:
        await explorer.press(key)
        listed = commands(explorer)
        assert "Next step" not in listed
        assert "Back to the main screen" in listed
        assert title in listed
        explorer.app.call_later(listed["Back to the main screen"].callback)
        await explorer.until(lambda: explorer.app.screen is explorer.main)


async def test_the_screen_that_writes_has_its_actions():
    async with exploring(NARROW, model="decoder") as explorer:
        await explorer.press("W")
        titles = list(dict.fromkeys(action.title for action in GENERATE if action.id))
        assert list(commands(explorer))[: len(titles)] == titles
        explorer.app.call_later(commands(explorer)["Write the next token, or go on to it"].callback)
        await explorer.shown("1 written")
