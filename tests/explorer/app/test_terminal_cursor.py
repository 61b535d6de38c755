"""The terminal's own cursor stands on the current cell."""

from tests.explorer.driving import MEDIUM, NARROW, WIDE, exploring


async def test_whatever_has_the_keys_the_cursor_is_where_the_position_is():
    async with exploring(MEDIUM, model="question") as explorer:

        def under() -> str:
            x, y = explorer.app.cursor_position
            return explorer.text.splitlines()[y][x:]

        # where nothing is marked it stays on the cell
        await explorer.press("space", "down", "6")
        assert explorer.app.cursor_position != (0, 0)
        # where the brackets are
        await explorer.go("encoder.0.self_attention.weights")
        await explorer.press("4", "right", "right")
        async for _ in explorer.sizes(WIDE, NARROW, MEDIUM):
            assert under().startswith("▌")
            x = explorer.app.cursor_position.x
            await explorer.press("right")
            assert explorer.app.cursor_position.x > x
            await explorer.press("left")
        # in the sentence, in the chart and in the whole
        await explorer.press("right", "1")
        assert under().startswith("did 7 @1")
        await explorer.press("t")
        assert under().startswith("→.99 ←")
        await explorer.press("escape", "0")
        await explorer.until(lambda: under()[0] in "▀▄ ")
        before = explorer.app.cursor_position
        await explorer.press("space")
        assert explorer.app.cursor_position != before
