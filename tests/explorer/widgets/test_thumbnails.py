from __future__ import annotations

import numpy as np
import pytest
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.views.view import Scale

UNIT = Scale("sequential", 0.0, 1.0)


class HeadsApp(App[None]):
    def __init__(self, heads: int, side: int = 6, selected: int = 0, scale: Scale = UNIT) -> None:
        super().__init__()
        self.tiles = [np.full((side, side), head / max(heads - 1, 1)) for head in range(heads)]
        self.selected, self.scale = selected, scale
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        yield HeadThumbnails()

    def on_mount(self) -> None:
        self.query_one(HeadThumbnails).show(self.tiles, self.selected, self.scale)
        self.query_one(HeadThumbnails).focus()

    def on_head_thumbnails_moved(self, message: HeadThumbnails.Moved) -> None:
        self.chosen.append(message.index)


async def test_heads_are_numbered_and_the_selected_one_marked_and_a_click_chooses(screen_text) -> None:
    app = HeadsApp(8, selected=5)
    async with app.run_test(size=(80, 10)) as pilot:
        lines = screen_text(app).splitlines()
        assert lines[0].split() == ["0", "1", "2", "3", "4", "▸5", "6", "7"]
        assert app.query_one(HeadThumbnails).size.height == 4
        assert lines[1].count("▀") == 8 * 6
        await pilot.click(HeadThumbnails, offset=(3 * 8 + 2, 2))
        assert app.chosen == [3]
        await pilot.click(HeadThumbnails, offset=(79, 2))
        assert app.chosen == [3]


async def test_keys_choose_heads_and_stop_at_the_ends() -> None:
    app = HeadsApp(3)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.press("left", "right", "l", "right", "h", "home", "end")
        assert app.chosen == [1, 2, 1, 0, 2]


async def test_heads_that_do_not_fit_scroll_into_view_and_it_is_said_what_is_not_shown(screen_text) -> None:
    app = HeadsApp(32)
    async with app.run_test(size=(40, 10)) as pilot:
        strip = app.query_one(HeadThumbnails)
        assert "▸0" in screen_text(app)
        assert strip.border_subtitle == "0–7 of 32 heads"
        await pilot.press("end")
        assert "▸31" in screen_text(app)
        assert strip.border_subtitle == "24–31 of 32 heads"
        await pilot.press("home")
        assert "▸0" in screen_text(app)
        await pilot.press("end")
        strip.show(app.tiles, 0, UNIT, of=48)
        assert strip.border_subtitle == "0–7 of 48 heads"


async def test_two_rows_share_a_line_in_their_own_colours() -> None:
    app = HeadsApp(1)
    app.tiles = [np.array([[0.0, 1.0], [1.0, 0.0], [0.5, -np.inf]])]
    async with app.run_test(size=(20, 6)):
        strips = app.screen._compositor.render_strips()
        first, second = [segment.style for segment in strips[1] if segment.text == "▀"]
        assert first is not None
        assert second is not None
        assert (first.color, first.bgcolor) == (second.bgcolor, second.color)
        assert "▀" in strips[2].text
        assert strips[2].text[1] == " "


@pytest.mark.parametrize("scale", [UNIT, Scale("diverging", -1.0, 1.0)])
async def test_without_colour_glyphs_stand_for_values(
    scale: Scale, screen_text, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = HeadsApp(1, scale=scale)
    app.tiles = [np.array([[1.0, 0.0, -np.inf], [0.1, 0.0, -np.inf], [scale.low, 0.4, 0.0]])]
    async with app.run_test(size=(20, 6)):
        lines = screen_text(app).splitlines()
        assert lines[1].rstrip() == ("@ ×" if scale is UNIT else "# ×")
        assert lines[2][0] == (" " if scale is UNIT else "=")


async def test_all_heads_are_shown_in_fewer_columns_where_there_is_no_room(screen_text) -> None:
    app = HeadsApp(12, side=24)
    app.tiles = [np.arange(24.0).reshape(1, 24) * (head == 3) for head in range(12)]
    async with app.run_test(size=(84, 10)) as pilot:
        strip = app.query_one(HeadThumbnails)
        strip.show(app.tiles, 0, Scale("sequential", 0.0, 23.0), shape=(5, 48))
        await pilot.pause()
        assert screen_text(app).splitlines()[0].split() == ["▸0", *map(str, range(1, 12))]
        assert strip.border_subtitle == "a cell is the largest of up to 5 × 10"


async def test_any_size_of_screen(shows) -> None:
    app = HeadsApp(12, selected=4)
    async with app.run_test(size=(80, 24)) as pilot:
        for head, size in enumerate([(1, 1), (3, 2), (200, 50)], 5):
            await pilot.resize_terminal(*size)
            await pilot.press("right")
            await pilot.resize_terminal(80, 24)
            await pilot.pause()
            assert app.chosen[-1] == head, size
            await shows(app, f"▸{head}")


async def test_no_heads(screen_text) -> None:
    app = HeadsApp(0)
    async with app.run_test(size=(20, 4)) as pilot:
        await pilot.press("right", "end")
        assert app.chosen == []
        assert not screen_text(app).strip()
