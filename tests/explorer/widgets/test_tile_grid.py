"""Small pictures: of heads in a row, and in a grid of which only what is on the screen is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from driving import exploring
from textual.app import App, ComposeResult
from textual.geometry import Offset, Region, Size

from tui_transformer.explorer.widgets.cursor import Grid
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails, TileGrid, Tiles, choose_grid
from tui_transformer.views.view import Scale


@pytest.mark.parametrize(
    ("count", "columns", "size", "side"),
    [
        (144, 12, (158, 40), 5),
        (144, 12, (118, 40), 11),
        (8, None, (158, 40), 38),
        (8, None, (78, 15), 13),
        (1024, 32, (78, 15), 9),
        (270, 9, (198, 52), 5),
        (1, 1, (1, 1), 9),
    ],
)
def test_tiles_are_as_large_as_all_of_them_fit(count, columns, size, side) -> None:
    grid = choose_grid(count, columns, Size(*size), 4 if columns else 0, None)
    assert grid.cell_width == side + 1
    assert columns or grid.virtual_size.width <= max(size[0], grid.gutter + grid.cell_width)
    assert choose_grid(count, columns, Size(*size), 4, 4).cell_width == 5, "as wanted"


@pytest.mark.parametrize(
    ("first", "wanted", "room", "count", "expected"),
    [(0, 5, 10, 20, 0), (0, 12, 10, 20, 3), (8, 2, 10, 20, 2), (15, 19, 10, 20, 10), (5, 1, 10, 4, 0)],
)
def test_scrolling_moves_no_more_than_needed(first: int, wanted: int, room: int, count: int, expected: int) -> None:
    across = Grid(1, count, 5, 1, gutter=4, header=0, slack=2)
    assert across.scroll_to_show((0, wanted), Offset(5 * first, 0), Size(4 + 5 * room + 2, 1)) == (5 * expected, 0)
    down = Grid(count, 1, 5, 3, gutter=0, header=0, slack_lines=1)
    assert down.scroll_to_show((wanted, 0), Offset(0, 3 * first), Size(5, 3 * room + 1)) == (0, 3 * expected)


class GridApp(App[None]):
    def __init__(self, columns: int | None, known: bool = True) -> None:
        super().__init__()
        self.columns, self.known = columns, known
        self.drawn: list[int] = []
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        yield TileGrid()

    def on_mount(self) -> None:
        tiles = Tiles(
            count=200,
            columns=self.columns,
            picture=self.picture,
            labels=lambda index: (f"a very long name of tile {index}", f"tile {index}", "?"),
            row_label=lambda row: f"row {row}",
            scale=lambda _: Scale("sequential", 0.0, 1.0),
        )
        self.query_one(TileGrid).show(tiles, 0)
        self.query_one(TileGrid).focus()

    def picture(self, index: int, side: int) -> np.ndarray | None:
        self.drawn.append(index)
        return np.eye(5) if self.known else None

    def on_tile_grid_chosen(self, event: TileGrid.Chosen) -> None:
        self.chosen.append(event.index)


PATHS = (("l", 1), ("hj", 20), ("lh", 20), ("kk", 0), (["end"], 19), (["l"], 19), (["home", "G"], 180), (["end"], 199))
"""Keys, each after those before, and the tile that they lead to."""


async def test_keys_move_in_a_grid_of_which_only_the_tiles_on_screen_are_drawn(screen_text) -> None:
    async with GridApp(20).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        grid = pilot.app.query_one(TileGrid)
        rows, columns = grid.shown
        assert len(set(pilot.app.drawn)) == len(rows) * len(columns) < 60
        assert "row 0" in screen_text(pilot.app)
        assert "tile 1 " in screen_text(pilot.app)
        assert "a very long" not in screen_text(pilot.app)
        for keys, selected in PATHS:
            await pilot.press(*keys, "enter")
            assert grid.index == selected
            assert f"tile {selected} " in screen_text(pilot.app)
        assert pilot.app.chosen == [selected for _, selected in PATHS]


async def test_where_tiles_flow_the_end_of_a_row_leads_on() -> None:
    async with GridApp(None).run_test(size=(80, 24)) as pilot:
        await pilot.press("end", "right")
        grid = pilot.app.query_one(TileGrid)
        assert grid.index == grid.columns


async def test_a_click_selects_and_the_size_changes() -> None:
    async with GridApp(20).run_test(size=(80, 24)) as pilot:
        grid = pilot.app.query_one(TileGrid)
        await pilot.click(TileGrid, offset=(7 + (grid.side + 1) * 2, 2))
        assert grid.index == 2
        before = grid.side
        await pilot.press("plus")
        assert grid.side > before
        await pilot.press(*["minus"] * 9)
        assert grid.side == 4


async def test_what_is_not_known_yet_is_marked_and_drawn_when_it_is(screen_text) -> None:
    async with GridApp(20, known=False).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "·" in screen_text(pilot.app)
        pilot.app.known = True
        pilot.app.query_one(TileGrid).renew(range(200))
        await pilot.pause()
        assert "▀" in screen_text(pilot.app)
        assert "·" not in screen_text(pilot.app)


@pytest.mark.parametrize(("layers", "heads", "size"), [(30, 9, (198, 52)), (16, 4, (118, 28)), (24, 2, (78, 18))])
def test_rows_stand_beside_each_other_where_all_fit_so(layers: int, heads: int, size: tuple[int, int]) -> None:
    grid, nowhere = choose_grid(layers * heads, heads, Size(*size), 4, None), Offset()
    assert grid.virtual_size.width <= size[0]
    assert grid.virtual_size.height <= size[1]
    assert grid.whole_cells(nowhere, Size(*size)) == (range(layers), range(heads))
    regions = {
        (row, column): grid.cell_region((row, column), nowhere) for row in range(layers) for column in range(heads)
    }
    screen = Region(0, 0, *size)
    assert all(region in screen for region in regions.values())
    for cell, region in regions.items():
        assert {grid.cell_at(corner, nowhere) for corner in (region.offset, region.bottom_right - (1, 1))} == {cell}
    assert grid.cell_at(Offset(*size), nowhere) is None


DEEP = {"layers": 30, "heads": 4, "d_model": 16, "d_ff": 8}


async def test_beside_each_other_every_row_has_its_label_and_keys_go_from_one_to_the_next():
    async with exploring((200, 60), model="decoder", sizes=DEEP) as explorer:
        await explorer.press("H")
        grid = explorer.app.screen.grid
        await explorer.until(lambda: "30 of 30 layers measured" in explorer.text)
        assert all(f"L{layer} " in explorer.text or f"L{layer}▌" in explorer.text for layer in range(30))
        assert "all 30 layers" in explorer.text
        for row in range(1, 30):
            await explorer.press("down")
            assert grid.at == (row, 0)
        await explorer.press("end")
        assert grid.at == (29, 3)


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
async def test_without_colour_glyphs_stand_for_values(scale: Scale, screen_text, no_colors) -> None:
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
