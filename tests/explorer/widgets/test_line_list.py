from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.text import Text
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.line_list import LineList


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


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
async def test_any_size_of_screen(environment: dict[str, str], shows, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    app = ListApp(1000)
    async with app.run_test(size=(80, 24)) as pilot:
        for size in [(1, 1), (3, 2), (200, 50)]:
            await pilot.press("G")
            await pilot.resize_terminal(*size)
            await pilot.press("up")
            await pilot.resize_terminal(80, 24)
            await shows(app, "word-998")
            assert app.lines.cursor == 998, size
