"""A line to type in."""

from __future__ import annotations

from driving import NARROW, exploring

from tui_transformer.explorer.shell.line_input import LineInput


async def test_a_key_that_comes_after_its_line_is_gone_does_nothing():
    async with exploring(NARROW, model="encoder") as explorer:
        await explorer.press(":")
        line = explorer.app.screen.query_one(LineInput)
        await explorer.press("escape")
        assert not line.is_attached
        await explorer.app.run_action("complete", line)
