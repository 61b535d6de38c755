from __future__ import annotations

from tui_transformer.explorer.shell.pages import MessageScreen
from tui_transformer.explorer.shell.prompt import PickScreen


async def test_a_result_that_comes_while_another_screen_is_on_top_is_given_when_that_is_closed(open_screen, nothing):
    below = PickScreen("Below", {"first": "", "second": ""})
    async with open_screen(below) as pilot:
        pilot.app.push_screen(MessageScreen("On top", "text"))
        await pilot.pause()
        below.dismiss("first")
        await pilot.pause()
        assert isinstance(pilot.app.screen, MessageScreen)
        assert pilot.app.result is nothing
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.result == "first"
        assert pilot.app.screen.id == "_default"


async def test_a_screen_closes_once_only(open_screen):
    below = PickScreen("Below", {"first": ""})
    async with open_screen(below) as pilot:
        below.dismiss("first")
        below.dismiss(None)
        await pilot.pause()
        assert pilot.app.result == "first"
        assert len(pilot.app.screen_stack) == 1
