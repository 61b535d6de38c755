"""A list of lines, a table of words, and scroll bars that come back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from driving import NARROW, SMALL, exploring
from rich.text import Text
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from tui_transformer.explorer.main.panes.matrix import TextPane
from tui_transformer.explorer.shell.dialog import Page
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.word_table import WordCells, WordTable
from tui_transformer.views.view import Scale


class ListApp(App[None]):
    def __init__(self, count: int = 250_000, line: Callable[[int], Text] | None = None) -> None:
        super().__init__()
        self.count = count
        self.asked: list[int] = []
        self.line = line or self.word
        self.moved: list[int] = []
        self.chosen: list[int] = []

    def word(self, index: int) -> Text:
        self.asked.append(index)
        return Text(f"word-{index}")

    def compose(self) -> ComposeResult:
        yield LineList()

    @property
    def lines(self) -> LineList:
        return self.query_one(LineList)

    def on_mount(self) -> None:
        self.lines.show(self.count, self.line)
        self.lines.focus()

    def on_line_list_moved(self, message: LineList.Moved) -> None:
        self.moved.append(message.index)

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        self.chosen.append(message.index)


async def test_only_lines_on_screen_are_made_and_the_cursor_scrolls_into_view(screen_text) -> None:
    app = ListApp()
    async with app.run_test(size=(40, 10)) as pilot:
        assert screen_text(app).splitlines()[0].strip() == "word-0"
        app.lines.cursor = 123_456
        await pilot.pause()
        assert "word-123456" in screen_text(app)
        assert app.lines.cursor == 123_456
        assert app.moved == []
        await pilot.press("end")
        assert "word-249999" in screen_text(app)
        assert len(set(app.asked)) < 100


async def test_keys_move_the_cursor_and_a_filter_keeps_it_on_its_line(screen_text) -> None:
    app = ListApp(100)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("up", "down", "j", "k", "G", "down", "ctrl+home", "pagedown", "pageup", "enter")
        assert app.moved == [1, 2, 1, 99, 0, 9, 0]
        assert app.chosen == [0]
        # a filter
        app.lines.cursor = 30
        app.lines.filter([10, 30, 50])
        await pilot.pause()
        assert screen_text(app).split() == ["word-10", "word-30", "word-50"]
        assert app.lines.cursor == 30
        await pilot.press("down", "enter")
        assert app.chosen == [0, 50]
        app.lines.cursor = 20
        assert app.lines.cursor == 50
        app.lines.filter(None)
        assert app.lines.cursor == 50


async def test_nothing_to_show(screen_text) -> None:
    app = ListApp(100)
    async with app.run_test(size=(40, 10)) as pilot:
        app.lines.filter([])
        await pilot.press("down", "G", "enter")
        app.lines.cursor = None  # on no line, as after a search
        await pilot.press("pagedown", "down", "G", "enter")
        assert app.lines.cursor is None
        assert (app.moved, app.chosen) == ([], [])
        assert not screen_text(app).strip()


async def test_a_double_click_chooses_and_the_cursor_has_a_style_of_its_own() -> None:
    app = ListApp(5)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("down")
        strips = app.screen._compositor.render_strips()
        styles = [next(iter(strip)).style for strip in strips[:4]]
        assert styles[0] == styles[2] == styles[3] != styles[1]
        await pilot.click(LineList, offset=(3, 2), times=2)
        await pilot.click(LineList, offset=(3, 8), times=2)
        assert (app.moved, app.chosen) == ([1, 2], [2])


async def test_lines_are_cut_harmless_and_never_markup(screen_text) -> None:
    texts = ("[b]bold[/b]", "\x1b[31mred\x07", "猫" * 60, "long " * 40)
    app = ListApp(4, lambda index: Text(texts[index]))
    async with app.run_test(size=(40, 10)):
        text = screen_text(app)
        assert "[b]bold[/b]" in text
        assert not {"\x1b", "\x07"} & set(text)
        assert {strip.cell_length for strip in app.screen._compositor.render_strips()} == {40}
        assert text.count("…") == 2


async def test_any_size_of_screen(shows, colors) -> None:
    app = ListApp(1000)
    async with app.run_test(size=(80, 24)) as pilot:
        for size in [(1, 1), (3, 2), (200, 50)]:
            await pilot.press("G")
            await pilot.resize_terminal(*size)
            await pilot.press("up")
            await pilot.resize_terminal(80, 24)
            await shows(app, "word-998")
            assert app.lines.cursor == 998, size


class TableApp(App[None]):
    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.rows, self.columns, self.known, self.chosen = rows, columns, True, 0

    def compose(self) -> ComposeResult:
        yield WordTable()

    def on_mount(self) -> None:
        rows = tuple(f"layer {i}" for i in range(self.rows))
        columns = tuple(f"t{i}" for i in range(self.columns))
        table = self.query_one(WordTable)
        table.show(WordCells(rows, columns, self.cell, Scale("sequential", 0.0, 1.0)), (0, 0))
        table.focus()

    def cell(self, row: int, column: int) -> tuple[str, float] | None:
        return (f"w{row}-{column}", 0.5) if self.known else None

    def on_word_table_chosen(self) -> None:
        self.chosen += 1


async def test_words_stand_under_their_columns(screen_text) -> None:
    async with TableApp(3, 4).run_test(size=(80, 24)) as pilot:
        lines = screen_text(pilot.app).splitlines()
        assert lines[0].split() == ["t0", "t1", "t2", "t3"]
        row = next(line for line in lines if "layer 1" in line)
        words = [word for word in row.split() if word.startswith(("layer", "1", "w"))]
        assert words == ["layer", "1", "w1-0", "w1-1", "w1-2", "w1-3"]
        assert abs(lines[0].index("t2") - row.index("w1-2")) <= 1


PATHS = (
    ("l", (0, 1)),
    (["home", *"jjl"], (2, 1)),
    (["home", "G"], (49, 0)),
    (["ctrl+home", "end"], (0, 99)),
    (["G", "end"], (49, 99)),
    (["ctrl+home", "home"], (0, 0)),
)
"""Keys, each after those before, and the cell that they lead to."""


async def test_the_cursor_moves_and_stays_on_screen(screen_text) -> None:
    async with TableApp(50, 100).run_test(size=(80, 24)) as pilot:
        table = pilot.app.query_one(WordTable)
        for times, (keys, cursor) in enumerate(PATHS, 1):
            await pilot.press(*keys, "enter")
            await pilot.pause()
            assert table.at == cursor
            assert cursor[0] in table.shown[0]
            assert cursor[1] in table.shown[1]
            assert f"w{cursor[0]}-{cursor[1]}" in screen_text(pilot.app)
            assert pilot.app.chosen == times


async def test_a_number_that_an_edge_cuts_is_left_out_and_one_alone_is_shown(screen_text) -> None:
    for size in ((40, 8), (33, 8), (14, 8)):
        app = TableApp(2, 20)
        app.cell = lambda row, column: ("word", 123.0)
        async with app.run_test(size=size) as pilot:
            for keys in (["end"], ["left"] * 3, ["home"], ["right"] * 4):
                await pilot.press(*keys)
                await pilot.pause()
                lines = [line for line in screen_text(app).splitlines()[1:] if "layer" not in line]
                assert set(re.findall(r"\d+", " ".join(lines))) == {"123"}


async def test_hostile_words_and_those_whose_number_is_none_are_drawn(screen_text, colors) -> None:
    app = TableApp(2, 2)
    app.cell = lambda row, column: ("\x1b[31m漢[b]", 0.3) if row else (f"w{row}-{column}", float("nan"))
    async with app.run_test(size=(40, 6)) as pilot:
        assert "w0-1" in screen_text(app)
        await pilot.press("right")
        await pilot.pause()
        assert "漢" in screen_text(app)
        assert "\x1b" not in screen_text(app)
        assert all(len(line) <= 40 for line in screen_text(app).splitlines())


async def test_what_is_not_known_yet_is_marked(screen_text) -> None:
    app = TableApp(2, 2)
    app.known = False
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        assert "·" in screen_text(app)
        assert "w0" not in screen_text(app)


async def test_the_width_of_cells_changes() -> None:
    async with TableApp(2, 40).run_test(size=(80, 24)) as pilot:
        table = pilot.app.query_one(WordTable)
        before = len(table.shown[1])
        await pilot.press("minus")
        assert len(table.shown[1]) > before
        await pilot.press("plus", "plus")
        assert len(table.shown[1]) < before


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
        place = cells.content_region
        strip = explorer.app.screen._compositor.render_strips()[place.bottom - 1]
        (corner,) = strip.crop(place.right - 1, place.right)
        assert corner.style.bgcolor == cells.ink().bgcolor


class Words(App[None]):
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
