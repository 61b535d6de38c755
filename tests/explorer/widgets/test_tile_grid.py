"""The grid of small pictures: layout, keys, labels, and that only what is on screen is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset, Size

from tui_transformer.explorer.widgets.cursor import Grid
from tui_transformer.explorer.widgets.tile_grid import TileGrid, Tiles, choose_grid
from tui_transformer.views.view import Scale


@pytest.mark.parametrize(
    ("count", "columns", "size", "side"),
    [
        (144, 12, (158, 40), 11),
        (8, None, (158, 40), 38),
        (8, None, (78, 15), 13),
        (1024, 32, (78, 15), 9),
        (1, 1, (1, 1), 9),
    ],
)
def test_tiles_are_as_large_as_all_of_them_fit(
    count: int, columns: int | None, size: tuple[int, int], side: int
) -> None:
    grid = choose_grid(count, columns, Size(*size), 4 if columns else 0, None)
    assert grid.cell_width == side + 1
    assert columns or grid.virtual_size.width <= max(size[0], grid.gutter + grid.cell_width)


def test_a_wanted_size_is_kept() -> None:
    assert choose_grid(1000, 32, Size(158, 40), 4, 4).cell_width == 5


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


async def test_only_the_tiles_on_screen_are_drawn(screen_text) -> None:
    async with GridApp(20).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        grid = pilot.app.query_one(TileGrid)
        rows, columns = grid.shown
        assert len(set(pilot.app.drawn)) == len(rows) * len(columns) < 60
        assert "row 0" in screen_text(pilot.app)
        assert "tile 1 " in screen_text(pilot.app)
        assert "a very long" not in screen_text(pilot.app)


@pytest.mark.parametrize(
    ("keys", "selected"),
    [("l", 1), ("j", 20), ("jlh", 20), (["end"], 19), ("G", 180), (["G", "end"], 199), (["end", "l"], 19), ("k", 0)],
)
async def test_keys_move_in_a_grid(keys: list[str], selected: int, screen_text) -> None:
    async with GridApp(20).run_test(size=(80, 24)) as pilot:
        await pilot.press(*keys, "enter")
        assert pilot.app.query_one(TileGrid).index == selected
        assert pilot.app.chosen == [selected]
        assert f"tile {selected} " in screen_text(pilot.app)


async def test_where_tiles_flow_the_end_of_a_row_leads_on() -> None:
    async with GridApp(None).run_test(size=(80, 24)) as pilot:
        await pilot.press("end", "right")
        grid = pilot.app.query_one(TileGrid)
        assert grid.index == grid.columns


async def test_the_size_changes() -> None:
    async with GridApp(20).run_test(size=(80, 24)) as pilot:
        grid = pilot.app.query_one(TileGrid)
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


async def test_a_click_selects() -> None:
    async with GridApp(20).run_test(size=(80, 24)) as pilot:
        grid = pilot.app.query_one(TileGrid)
        await pilot.click(TileGrid, offset=(7 + (grid.side + 1) * 2, 2))
        assert grid.index == 2
