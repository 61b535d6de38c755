"""A widget that cannot be drawn: the program goes on, and says what failed, where, and how to go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from driving import NARROW, WIDE, Explorer, exploring
from textual.app import App
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.errors import InputError
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.whole.pane import WholePane
from tui_transformer.explorer.shell.undrawn import MOST_TOLD
from tui_transformer.explorer.widgets.careful import CarefulWidget
from tui_transformer.explorer.widgets.drawn import DrawnWidget
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.matrix_pane import MatrixPane
from tui_transformer.explorer.widgets.thumbnails import HeadThumbnails

DRAWING = {
    HeatMap: "render_line",
    Legend: "render_line",
    WholePane: "render_line",
    HeadThumbnails: "render_line",
    SentencePane: "render",
    DrawnWidget: "render_line",
}


def failing(error: Exception):
    def fail(*_, **__):
        raise error

    return fail


@asynccontextmanager
async def exploring_what_fails(size=NARROW, **options) -> AsyncIterator[Explorer]:
    """An explorer of which a part may fail to draw itself."""
    async with exploring(size, model="question", **options) as explorer:
        yield explorer
        explorer.app.failures.told.clear()


async def told(explorer: Explorer, widget: type[Widget]) -> str:
    """What is said once a widget was to be drawn anew."""
    next(each for each in explorer.main.query(widget) if each.display and each.region).refresh()
    await explorer.until(lambda: explorer.app.failures.told)
    await explorer.handled()
    (said,) = set(explorer.app.failures.told.values())
    return said


@pytest.mark.parametrize("widget", DRAWING)
async def test_the_program_goes_on_where_a_widget_cannot_be_drawn(widget, monkeypatch, tmp_path: Path):
    async with exploring_what_fails(WIDE, whole=widget is WholePane) as explorer:
        await explorer.go("encoder.0.self_attention.weights")
        monkeypatch.setattr(widget, DRAWING[widget], failing(RuntimeError("secret of the user")))
        said = await told(explorer, widget)
        assert "cannot be drawn: the program made a mistake (RuntimeError): please report it; a report is in" in said
        assert "the rest goes on: go to another step, or leave with esc or q" in said
        assert "secret" not in said
        assert "\n" not in said
        assert said in explorer.app.messages.text
        assert len(list(tmp_path.rglob("tui-transformer-crash-*.txt"))) == 1
        monkeypatch.undo()
        await explorer.press("space")
        assert explorer.stop == "encoder.0.self_attention.context"


async def test_what_a_user_can_mend_is_said_in_the_pane_by_its_name(monkeypatch):
    async with exploring_what_fails() as explorer:
        await explorer.press("space")
        title = explorer.main.query_one(MatrixPane).border_title
        wrong = InputError("model.safetensors was cut while it was open: fetch \x1b[31m[red]it again")
        monkeypatch.setattr(HeatMap, "render_line", failing(wrong))
        said = await told(explorer, HeatMap)
        assert said.startswith(f"{title} cannot be drawn: model.safetensors was cut while it was open: fetch ")
        await explorer.shown("cannot be drawn: model.safetensors", "[red]it again")
        assert "\x1b" not in explorer.text
        monkeypatch.undo()
        explorer.main.query_one(HeatMap).refresh()
        await explorer.until(lambda: "where" in explorer.text)


async def test_an_error_that_is_another_one_each_time_is_reported_so_often_only(tmp_path: Path):
    async with exploring_what_fails() as explorer:
        pane = explorer.main.query_one(MatrixPane)
        for number in range(MOST_TOLD + 5):
            assert "cannot be drawn" in explorer.app.undrawn(pane, RuntimeError(str(number)))
        assert len(list(tmp_path.rglob("tui-transformer-crash-*.txt"))) == MOST_TOLD


async def test_where_nobody_is_told_the_error_is_raised():
    class Wrong(CarefulWidget):
        def render_line(self, y: int) -> Strip:
            raise RuntimeError("wrong")

    class Other(App[None]):
        def compose(self):
            yield Wrong()

    with pytest.raises(RuntimeError, match="wrong"):
        async with Other().run_test() as pilot:
            await pilot.pause()
