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


async def test_whatever_has_the_keys_the_cursor_is_where_the_position_is(screen_text):
    async with exploring((100, 30), model="question") as explorer:

        def under() -> str:
            x, y = explorer.app.cursor_position
            return screen_text(explorer.app).splitlines()[y][x:]

        await explorer.press(":")
        await explorer.answer(WEIGHTS)
        await explorer.press("4", "right", "right", "right", "down")
        await explorer.press("1")
        assert under().startswith("did 7 @1")
        await explorer.press("t")
        assert under().startswith("→.99 ←")
        await explorer.press("escape", "0")
        await explorer.until(lambda: under()[0] in "▀▄ ")
        x, y = explorer.app.cursor_position
        await explorer.press("space")
        assert explorer.app.cursor_position != (x, y)


async def test_where_nothing_is_marked_the_cursor_stays_on_the_cell(screen_text):
    async with exploring((100, 30), model="question") as explorer:
        await explorer.press("space", "down", "6")
        x, y = explorer.app.cursor_position
        assert (x, y) != (0, 0)
