from __future__ import annotations

from tui_transformer.explorer.shell.pages import MessageScreen
from tui_transformer.explorer.shell.prompt import PickScreen


async def test_a_screen_closes_once_and_gives_its_result_when_what_is_on_top_is_closed(open_screen, nothing):
    below = PickScreen("Below", {"first": "", "second": ""})
    async with open_screen(below) as pilot:
        pilot.app.push_screen(MessageScreen("On top", "text"))
        await pilot.pause()
        below.dismiss("first")
        below.dismiss(None)
        await pilot.pause()
        assert isinstance(pilot.app.screen, MessageScreen)
        assert pilot.app.result is nothing
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app.result == "first"
        assert pilot.app.screen.id == "_default"
