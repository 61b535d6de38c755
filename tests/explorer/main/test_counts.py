"""Counts before movements; a digit alone still goes to its pane."""

from __future__ import annotations

import pytest
from driving import NARROW, WIDE, exploring

from tui_transformer.explorer.shell.keys import MENUS
from tui_transformer.explorer.shell.menu import MenuScreen
from tui_transformer.explorer.shell.preferences import Preferences

WEIGHTS = "encoder.0.self_attention.weights"


async def typed(explorer, *keys: str) -> None:
    """Type keys one right after the other."""
    explorer.send(*keys)
    await explorer.handled()
    await explorer.handled()
    await explorer.settled()


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_digit_is_a_count_of_a_letter_and_with_an_arrow_a_pane(size):
    async with exploring(size, model="question", at=WEIGHTS) as explorer:
        await typed(explorer, "5", "j")
        assert (explorer.position.place.row, explorer.view.active) == (5, "matrix")
        await typed(explorer, "3", "l")
        assert explorer.position.place.column == 3
        await typed(explorer, "2", "k")
        assert explorer.position.place.row == 3
        await typed(explorer, "3", "right")
        assert (explorer.view.active, explorer.position.place.head) == ("heads", 1)
        await explorer.press("0")
        assert explorer.parts.panes.whole


async def test_two_digits_and_a_step():
    async with exploring(WIDE, model="question", whole=None) as explorer:
        assert explorer.place[0] == 1
        await typed(explorer, "1", "0", "space")
        assert explorer.place[0] == 11
        assert explorer.parts.panes.whole
        await typed(explorer, "5", "backspace")
        assert explorer.place[0] == 6


async def test_a_count_is_said_while_it_is_typed_and_ends_with_escape_or_after_a_moment():
    async with exploring(WIDE, model="question") as explorer:
        explorer.parts.counting.moment = 60.0
        await explorer.go(WEIGHTS)
        await typed(explorer, "1", "2")
        assert explorer.text.splitlines()[-1].split()[:4] == ["12", "times", "space", "next"]
        await typed(explorer, "escape", "j")
        assert "times" not in explorer.text.splitlines()[-1]
        assert explorer.view.active == "steps"
        await explorer.press("4")
        await typed(explorer, "3", "escape", "]")
        assert explorer.position.place.head == 1
        await explorer.go(WEIGHTS)
        explorer.parts.counting.moment = 1e-6
        await explorer.press("2", "j")
        assert explorer.view.active == "steps"
        assert explorer.stop != WEIGHTS


async def test_the_key_that_the_user_gave_for_back_ends_a_count_and_does_no_more():
    async with exploring(
        WIDE, model="question", preferences=Preferences(keys={"back": "f7"}, classic=True)
    ) as explorer:
        explorer.parts.counting.moment = 60.0
        await explorer.go(WEIGHTS)
        await typed(explorer, "3")
        assert "f7 no count" in explorer.text
        await typed(explorer, "f7")
        assert ("times" in explorer.text, explorer.view.active) == (False, "heads")
        await typed(explorer, "f7")
        assert explorer.view.active == "matrix"


async def test_a_click_on_a_key_while_a_count_stands_is_counted_as_the_key_is():
    async with exploring(WIDE, model="question", preferences=Preferences()) as explorer:
        explorer.parts.counting.moment = 60.0
        await explorer.go(WEIGHTS)
        for key, wanted in {"space": 16, "backspace": 13}.items():
            await typed(explorer, "3")
            await explorer.click(f" {key} ", 1)
            assert (explorer.place[0], explorer.view.active) == (wanted, "matrix")
        await typed(explorer, "4")
        await explorer.click("h j k l", 2)
        assert explorer.position.place.row == 4
    async with exploring(WIDE, model="question", preferences=Preferences(keys={"cursor.up": "up,f5"})) as explorer:
        await typed(explorer, "3")
        assert "h j f5 l cell" in explorer.text  # an arrow is not counted


async def test_the_key_of_a_menu_is_not_counted():
    async with exploring(WIDE, model="question", preferences=Preferences()) as explorer:
        explorer.parts.counting.moment = 60.0
        await explorer.press("space")
        for menu in MENUS.values():
            await typed(explorer, "5", menu.key)
            assert isinstance(explorer.app.screen, MenuScreen), menu.key
            await explorer.leave()
            assert explorer.view.active == "cell"
