"""The terminal's own cursor stands on the current cell."""

import pytest

from tests.explorer.driving import WIDE, exploring

WEIGHTS = "encoder.0.self_attention.weights"


@pytest.mark.parametrize("size", [WIDE, (80, 24)])
async def test_the_cursor_of_the_terminal_is_where_the_brackets_are(size, screen_text):
    async with exploring(size, model="question") as explorer:
        await explorer.press(":")
        await explorer.answer(WEIGHTS)
        await explorer.press("4", "right", "right", "down")
        x, y = explorer.app.cursor_position
        line = screen_text(explorer.app).splitlines()[y]
        assert line[x] == "▌"
        await explorer.press("right")
        assert explorer.app.cursor_position.x > x
