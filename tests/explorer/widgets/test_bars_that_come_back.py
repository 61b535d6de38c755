"""Scroll bars that were away while the theme changed come back in its colours, and so does the corner between them."""

from __future__ import annotations

from driving import Explorer, exploring

from tui_transformer.explorer.widgets.heat_map import HeatMap


def ground_of_corner(explorer: Explorer) -> str:
    """What the cell at the lower right of the matrix is drawn on."""
    place = explorer.main.query_one("#matrix").query_one(HeatMap).content_region
    strip = explorer.app.screen._compositor.render_strips()[place.bottom - 1]
    (corner,) = strip.crop(place.right - 1, place.right)
    return str(corner.style.bgcolor)


async def test_the_corner_between_bars_has_the_ground_of_the_theme():
    async with exploring((40, 12), model="encoder-decoder", sizes={"layers": 2}, whole=None) as explorer:
        await explorer.press("space", "4")
        await explorer.keys("}")
        await explorer.keys("ctrl+t")
        explorer.send("minus")
        await explorer.press("backspace")
        cells = explorer.main.query_one("#matrix").query_one(HeatMap)
        assert cells.show_horizontal_scrollbar
        assert cells.show_vertical_scrollbar
        assert ground_of_corner(explorer) == str(cells.ink().bgcolor)
