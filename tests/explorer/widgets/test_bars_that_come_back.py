"""Scroll bars that were away while the theme changed come back in its colours, and so does the corner between them."""

from __future__ import annotations

import asyncio

from driving import NARROW, SMALL, Explorer, exploring
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from tui_transformer.explorer.main.panes.matrix import TextPane
from tui_transformer.explorer.shell.dialog import Page
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


class Words(App[None]):
    """The pane of words, alone."""

    def compose(self) -> ComposeResult:
        yield TextPane(id="text")


async def test_a_bar_that_comes_back_stands_where_the_words_are_scrolled_to():
    async with Words().run_test(size=(40, 12)) as pilot:
        pane = pilot.app.query_one(TextPane)
        words = pane.query_one("#words", Static)

        async def show(lines: int) -> None:
            words.update("\n".join(map(str, range(lines))))
            await pilot.pause()

        await show(60)
        pane.scroll_to(y=30, animate=False)
        await pilot.pause()
        assert pane.vertical_scrollbar.position == 30
        await show(3)
        assert not pane.show_vertical_scrollbar
        await show(60)
        assert pane.show_vertical_scrollbar
        assert pane.vertical_scrollbar.position == pane.scroll_y == 0


async def test_a_bar_does_not_come_and_go_for_good_where_it_takes_the_last_column_of_a_text(monkeypatch):
    layouts, lay_out = [], Screen._refresh_layout
    monkeypatch.setattr(
        Screen, "_refresh_layout", lambda *given, **named: [layouts.append(1), lay_out(*given, **named)]
    )
    async with exploring(NARROW) as explorer:
        for key in ("t", "question_mark"):  # the card of a tour, and one that lies over it
            await explorer.press(key)
            async for size in explorer.sizes((5, 19), (7, 4), (3, 19)):
                await asyncio.sleep(0.05)
                layouts.clear()
                await asyncio.sleep(0.1)
                assert not layouts, (key, size)
        await explorer.resize(*SMALL)
        assert explorer.app.screen.query_one(Page).show_vertical_scrollbar
