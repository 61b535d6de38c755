"""A table of words in the colours of their numbers."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from tui_transformer.explorer.widgets.word_table import WordCells, WordTable
from tui_transformer.views.view import Scale


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


@pytest.mark.parametrize("color", [True, False])
async def test_hostile_words_and_those_whose_number_is_none_are_drawn(color: bool, screen_text, monkeypatch) -> None:
    if not color:
        monkeypatch.setenv("NO_COLOR", "1")
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
