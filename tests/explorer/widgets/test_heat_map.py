"""A matrix as a heat map, and the legend of its scale."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.views.view import Axis, Frame, Meeting, Scale, Tile, Values, View

WORDS = ("[CLS]", "the", "waves", "crashed", "forcefully", "against", "the", "shore")
UNIT = Scale("sequential", 0.0, 1.0)
SIGNED = Scale("diverging", -4.0, 4.0)


def view_of(values: Values, labels: Callable[[int], str] = str, *, integer: bool = False) -> View:
    rows, columns = values.shape
    return View(
        "scores",
        "Scores",
        Axis("query", rows, labels),
        Axis("key", columns, labels),
        "sequential",
        lambda r, c: values[r.start : r.stop, c.start : c.stop],
        integer=integer,
    )


def all_of(view: View) -> Tile:
    return view.tile(range(view.rows.size), range(view.columns.size))


class HeatMapApp(App[None]):
    def __init__(self, view: View, scale: Scale = UNIT, tile: Tile | None = None) -> None:
        super().__init__()
        self.view, self.scale, self.tile = view, scale, tile or all_of(view)
        self.heat_map = HeatMap()
        self.moved: list[tuple[int, int]] = []
        self.chosen: list[tuple[int, int]] = []
        self.needed: list[HeatMap.TileNeeded] = []

    def compose(self) -> ComposeResult:
        yield self.heat_map

    def on_mount(self) -> None:
        self.heat_map.show(self.view, self.scale, self.tile)
        self.heat_map.focus()

    def on_heat_map_moved(self, message: HeatMap.Moved) -> None:
        self.moved.append((message.row, message.column))

    def on_heat_map_chosen(self, message: HeatMap.Chosen) -> None:
        self.chosen.append((message.row, message.column))

    def on_heat_map_tile_needed(self, message: HeatMap.TileNeeded) -> None:
        self.needed.append(message)


def eight() -> View:
    values = np.arange(64).reshape(8, 8) / 100
    return view_of(values, lambda index: WORDS[index])


async def test_numbers_and_labels_are_on_screen_in_the_colours_of_the_theme(screen_text) -> None:
    app = HeatMapApp(eight())
    async with app.run_test(size=(80, 24)) as pilot:
        lines = screen_text(app).splitlines()
        assert lines[0].split()[:4] == ["[CLS]", "the", "waves", "crashed"]
        assert "forcef…" in lines[0]
        waves = next(line for line in lines if line.strip().startswith("waves"))
        assert waves.split()[1:4] == [".16", ".17", ".18"]

        def lowest() -> Any:
            strip = app.screen._compositor.render_strips()[1]
            return next(segment.style.bgcolor for segment in strip if segment.style and segment.text.strip() == ".01")

        dark = lowest()
        app.theme = "textual-light"
        await pilot.pause()
        assert sum(lowest().get_truecolor()) > sum(dark.get_truecolor()) + 300


async def test_what_lies_beyond_the_scale_is_marked(screen_text) -> None:
    values = np.full((3, 40), 0.25)
    values[0, 0], values[1, 1], values[2, 2] = 1000.0, -7.5, np.nan
    app = HeatMapApp(view_of(values), Scale("diverging", -1.0, 1.0, 1000.0))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "down", "right", "right")
        for size in (80, 400):
            await pilot.resize_terminal(size, 24)
            lines = screen_text(app).splitlines()
            assert [line.count(mark) for mark in "▲▼" for line in lines if mark in line] == [1, 1]
            assert size == 80 or any("1000.00▲" in line for line in lines)


@pytest.mark.parametrize("farthest", [0.0, 1000.0])
async def test_what_is_masked_is_not_beyond_the_scale_and_what_is_infinite_is(farthest, screen_text) -> None:
    values = np.full((3, 40), 0.25)
    values[0, 3], values[1, 1], values[2, 2] = np.inf, -np.inf, np.nan
    app = HeatMapApp(view_of(values), Scale("diverging", -1.0, 1.0, farthest))
    async with app.run_test(size=(80, 24)) as pilot:
        for size in (80, 400):
            await pilot.resize_terminal(size, 24)
            text = screen_text(app)
            assert text.count("▲") == 1
            assert "▼" not in text
            assert size == 80 or "inf ▲" in text.replace("inf▲", "inf ▲")


async def test_keys_move_the_bracketed_cursor_and_it_is_kept_as_far_as_the_next_matrix_reaches(screen_text) -> None:
    app = HeatMapApp(eight())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "right", "l", "j", "h", "k")
        assert app.heat_map.cursor == (1, 1)
        assert app.moved[-1] == (1, 1)
        line = next(line for line in screen_text(app).splitlines() if "▌" in line)
        assert line.split("▌")[1].split("▐")[0].strip() == ".09"
        # the ends, where they stop
        await pilot.press("end", "G")
        assert app.heat_map.cursor == (7, 7)
        moves = len(app.moved)
        await pilot.press("right", "down", "pagedown", "ctrl+d")
        assert len(app.moved) == moves
        await pilot.press("home", "ctrl+home")
        assert app.heat_map.cursor == (0, 0)
        # enter and a double click choose
        await pilot.press("down", "enter")
        assert app.chosen == [(1, 0)]
        await pilot.click(HeatMap, offset=(45, 8), times=2)
        assert app.chosen[-1] == app.moved[-1] == app.heat_map.cursor
        assert app.heat_map.cursor[0] > 1
        # another matrix
        await pilot.press("end", "G")
        small = view_of(np.zeros((3, 5)))
        app.heat_map.show(small, UNIT, all_of(small))
        assert app.heat_map.cursor == (2, 4)
        app.heat_map.show(small, UNIT, all_of(small), cursor=(0, 0))
        assert app.heat_map.cursor == (0, 0)


async def test_setting_the_cursor_scrolls_and_tells_nobody(screen_text) -> None:
    app = HeatMapApp(view_of(np.zeros((300, 300))))
    async with app.run_test(size=(80, 24)) as pilot:
        app.heat_map.cursor = (250, 260)
        await pilot.pause()
        text = screen_text(app)
        assert "250" in text
        assert "260" in text.splitlines()[0]
        assert app.moved == []
        app.heat_map.cursor = (9999, -5)
        assert app.heat_map.cursor == (299, 0)


async def test_masked_cells_differ_from_zero_and_from_missing_and_integers_are_whole(screen_text) -> None:
    view = view_of(np.array([[0.5, -np.inf, np.nan, 0.0], [0.1, 0.2, 0.3, 0.4]]))
    app = HeatMapApp(view, tile=Tile(0, 0, view.tile(range(1), range(4)).values))
    async with app.run_test(size=(80, 12)) as pilot:
        text = screen_text(app)
        assert text.count("×") == 2
        assert text.count("·") == 4
        assert ".50" in text
        integers = view_of(np.array([[101, 30521]]), integer=True)
        app.heat_map.show(integers, Scale("sequential", 0, 30521), all_of(integers))
        await pilot.pause()
        assert "30521" in screen_text(app)


async def test_missing_cells_are_asked_for_once_and_drawn_when_supplied(screen_text) -> None:
    view = view_of(np.full((400, 400), 0.25))
    app = HeatMapApp(view, tile=Tile(0, 0, np.zeros((0, 0))))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "right", "plus")
        assert len(app.needed) == 1
        assert "·" in screen_text(app)
        needed = app.needed[0]
        assert len(needed.rows) > 23
        app.heat_map.supply(view.tile(needed.rows, needed.columns), view)
        await pilot.pause()
        assert "·" not in screen_text(app)
        assert ".25" in screen_text(app)
        await pilot.press("G")
        assert len(app.needed) == 2
        assert 399 in app.needed[1].rows
        # a tile that was asked for earlier does not end the wait
        app.heat_map.supply(view.tile(needed.rows, needed.columns), view)
        await pilot.press("left")
        assert len(app.needed) == 2


async def test_zoom_gives_colours_alone_then_more_digits(screen_text) -> None:
    app = HeatMapApp(view_of(np.full((8, 8), 1 / 3)))
    async with app.run_test(size=(120, 24)) as pilot:
        assert ".33" in screen_text(app)
        await pilot.press("minus", "minus", "minus")
        assert app.heat_map.grid.cell_width == 2
        assert ".33" not in screen_text(app)
        await pilot.press("minus", "plus")
        assert app.heat_map.grid.cell_width == 12
        assert ".333333" in screen_text(app)


async def test_labels_with_wide_characters_and_escapes_keep_the_columns(screen_text) -> None:
    names = ("猫が好き", "\x1b[31mred", "[b]bold[/b]", "👩‍👩‍👧", "e\u0301", "\u202eright")
    app = HeatMapApp(view_of(np.full((6, 6), 0.25), lambda index: names[index]))
    async with app.run_test(size=(80, 10)):
        strips = app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {80}
        text = screen_text(app)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[b]bol" in text


async def test_without_colour_glyphs_and_brackets_say_it(screen_text, no_colors) -> None:
    app = HeatMapApp(eight())
    async with app.run_test(size=(80, 12)) as pilot:
        for scale, low, high in ((UNIT, ",", "@@"), (SIGNED, "==", "##")):
            values = np.linspace(scale.low, scale.high, 300).reshape(3, 100)
            values[0, 5] = -np.inf
            view = view_of(values)
            app.heat_map.show(view, scale, all_of(view), cursor=(0, 0))
            await pilot.pause()
            text = screen_text(app)
            assert "[]" in text
            assert "×" in text
            assert low in text
            await pilot.press("end")
            assert high not in screen_text(app).splitlines()[1]
            assert high in screen_text(app).splitlines()[3]


async def test_any_size_of_screen(screen_text, shows) -> None:
    app = HeatMapApp(eight())
    async with app.run_test(size=(80, 24)) as pilot:
        for size in [(1, 1), (2, 1), (5, 3), (9, 2), (40, 10), (200, 60)]:
            await pilot.press("end", "G")
            await pilot.resize_terminal(*size)
            await pilot.press("up", "left")
            assert app.heat_map.cursor == (6, 6), size
            assert len(screen_text(app).splitlines()) == size[1]
            await pilot.resize_terminal(80, 24)
            await shows(app, ".54")


def test_every_key_has_an_id_and_a_tooltip() -> None:
    bindings = list(HeatMap()._bindings.key_to_bindings.values())
    own = [binding for group in bindings for binding in group if binding.id and binding.id.startswith("cursor.")]
    assert len({binding.id for binding in own}) == 15
    assert all(binding.tooltip for binding in own)


async def test_a_larger_place_leaves_nothing_scrolled_away():
    app = HeatMapApp(view_of(np.eye(3, 4)))
    async with app.run_test(size=(22, 2)) as pilot:
        app.heat_map.wanted_width = 9
        app.heat_map.on_resize()
        app.heat_map.cursor = 0, 3
        await pilot.pause()
        assert app.heat_map.scroll_offset.x > 0
        await pilot.resize_terminal(38, 5)
        await pilot.pause()
        assert app.heat_map.grid.virtual_size.width == 38
        assert app.heat_map.scroll_offset.x == 0


@pytest.mark.parametrize("columns", [11, 13, 16])
async def test_the_last_label_reaches_beyond_its_column_and_moves_nothing_beside_it(columns, screen_text) -> None:
    """It took room that the line had not, so that the border beside it was pushed off the screen."""
    app = HeatMapApp(view_of(np.full((16, columns), 0.25), lambda index: f"word {index}"))
    async with app.run_test(size=(60, 10)):
        assert app.heat_map.grid.cell_width < 5, "labels stand above some of the columns"
        assert {sum(each.cell_length for each in app.heat_map.render_line(y)) for y in range(10)} == {60}


async def test_a_double_click_on_a_cell_that_is_only_in_part_on_screen_chooses_that_cell() -> None:
    app = HeatMapApp(view_of(np.zeros((3, 60))))
    async with app.run_test(size=(55, 10)) as pilot:
        heat_map = app.heat_map
        await pilot.press("plus", "plus", "plus")
        edge = heat_map.viewport.width - 1
        column, cut = divmod(edge + 1 - heat_map.grid.gutter, heat_map.grid.cell_width)
        assert cut, heat_map.grid
        await pilot.click(HeatMap, offset=(edge, 2), times=2)
        assert heat_map.scroll_offset.x, "it is scrolled into view between the clicks"
        assert app.chosen == [(0, column)]


SHARES = Scale("sequential", 0.0, 0.9912)
BOTH_SIGNS = Scale("diverging", -3.5, 3.5)


class LegendApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Legend()


Line = Callable[..., Awaitable[str]]


@asynccontextmanager
async def legend(screen_text, size: int = 80) -> AsyncIterator[Line]:
    """A legend so wide: a function that shows a scale and gives its line."""
    app = LegendApp()
    async with app.run_test(size=(size, 2)) as pilot:

        async def line(scale: Scale, **more: Any) -> str:
            app.query_one(Legend).show(scale, **more)
            await pilot.pause()
            assert app.screen._compositor.render_strips()[0].cell_length == size
            return screen_text(app).splitlines()[0]

        yield line


async def test_ends_masked_cells_note_zero_and_lines_that_meet_in_the_place_of_the_scale_are_named(screen_text) -> None:
    async with legend(screen_text) as line:
        text = await line(SHARES, absent="masked", note="every row sums to 1")
        assert text.split() == ["0", "0.991", "×", "masked", "every", "row", "sums", "to", "1"]
        text = await line(BOTH_SIGNS)
        assert text.split() == ["−3.5", "0", "3.5"]
        text = await line(Scale("diverging", -3.5, 3.5, -54.5), absent="masked")
        assert "× masked   ▲▼ to −54.5, beyond the 99.5th p" in text
        assert "× masked   ▲ ∞" in await line(BOTH_SIGNS, absent="masked", infinite=True)
        assert (await line(Scale("sequential", 0.2, 0.200012))).split() == ["0.2", "0.20001"]
        assert "   ▲ to 54.5, beyond" in await line(Scale("sequential", 0.0, 3.5, 54.5))
        # two lines that meet
        text = await line(BOTH_SIGNS, frame=meeting(2, 4))
        assert text.rstrip() == "q where ▀▀▀▀▀▀······ k did   + 0 · 0.167 → 1.23"
        assert "· (−0.5) → 1.23" in await line(BOTH_SIGNS, frame=meeting(4, 4))
        # of many products the last ones are shown
        text = await line(BOTH_SIGNS, frame=meeting(300, 384))
        assert text.startswith(f"q where {'▀' * 34} k did   + ")
        text = await line(BOTH_SIGNS, frame=meeting(3, 384))
        assert text.startswith(f"q where ▀▀▀{'·' * 31} k did   + ")


async def test_the_ramp_runs_from_the_low_to_the_high_colour() -> None:
    app = LegendApp()
    async with app.run_test(size=(60, 2)) as pilot:
        app.query_one(Legend).show(SHARES)
        await pilot.pause()
        strip = app.screen._compositor.render_strips()[0]
        lightness = [
            sum(s.style.bgcolor.get_truecolor()) for s in strip if s.style and s.style.bgcolor and s.text == " "
        ]
        assert lightness[0] < 120
        assert max(lightness) > 600


async def test_without_colour_the_ramp_is_of_glyphs(screen_text, no_colors) -> None:
    async with legend(screen_text) as line:
        assert "blank ,, :: -- == ++ ** ## %% @@" in await line(SHARES)
        assert "== -= --  - blank  + ++ +# ##" in await line(BOTH_SIGNS)


def meeting(done: int, of: int) -> Frame:
    numbers = np.linspace([-1.0, 0.5], [2.0, -0.5], of).T
    return Frame(Tile(0, 0, np.zeros((1, 1))), "", Meeting("q where", "k did", numbers, done, 1.234567))


@pytest.mark.parametrize("size", [1, 5, 9, 12, 20, 30, 40])
async def test_any_width(size: int, screen_text) -> None:
    async with legend(screen_text, size) as line:
        assert (await line(BOTH_SIGNS, absent="masked", note="a long note \x1b[31m"))[:4] == "−3.5"[:size]
        assert (await line(BOTH_SIGNS, frame=meeting(3, 8)))[:7] == "q where"[:size]
