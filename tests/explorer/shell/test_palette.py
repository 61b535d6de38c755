"""The command palette in terminals that have no room for it."""

from __future__ import annotations

from driving import NARROW, exploring


async def test_the_palette_is_left_where_its_list_has_no_line():
    async with exploring(NARROW) as explorer:
        await explorer.keys("ctrl+p")
        await explorer.until(lambda: explorer.app.screen is not explorer.main)
        await explorer.resize(5, 3)
        await explorer.keys("pageup", "pagedown", "end")
        assert explorer.app.screen is explorer.main
        await explorer.keys("ctrl+p", "pageup")
        assert explorer.app.screen is explorer.main
        assert any("palette needs a terminal of" in message for message in explorer.messages)


async def test_the_palette_runs_what_was_chosen():
    async with exploring(NARROW) as explorer:
        await explorer.keys("ctrl+p")
        await explorer.answer("Next step")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        await explorer.until(lambda: explorer.place[0] == 2)
