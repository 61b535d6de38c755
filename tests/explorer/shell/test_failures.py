"""Mistakes of the program, and files that are lost: it goes on where it can, says what failed and where, and heals."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from driving import NARROW, WIDE, Explorer, exploring
from reference import REFERENCES
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.guard.failures import MOST_TOLD, careful
from tui_transformer.explorer.main.panes.matrix import ChartPane, MatrixPair
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.dialog import CardScreen, MessageScreen
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.widgets.heat_map import HeatMap, MatrixPane
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.session import Session

MISTAKE = "the program made a mistake (RuntimeError): please report it; a report is in"


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


def reports(tmp_path: Path) -> int:
    """How many reports there are since this was asked last."""
    files = list(tmp_path.rglob("tui-transformer-crash-*.txt"))
    for file in files:
        file.unlink()
    return len(files)


async def told(explorer: Explorer, widget: type[Widget]) -> str:
    """The messages once a widget was to be drawn anew."""
    next(each for each in explorer.main.query(widget) if each.display and each.region).refresh()
    await explorer.until(lambda: explorer.app.failures.told)
    await explorer.handled()
    (said,) = set(explorer.app.failures.told.values())
    return said


async def test_the_program_goes_on_where_a_widget_cannot_be_drawn(monkeypatch, tmp_path: Path):
    async with exploring_what_fails(WIDE) as explorer:
        for widget in (HeatMap, Legend, HeadThumbnails, SentencePane, ChartPane, WholePane):
            await explorer.press(*["0"] * (widget is WholePane))
            await explorer.go("encoder.0.self_attention.weights")
            with monkeypatch.context() as broken:
                broken.setattr(widget, "render_line", failing(RuntimeError("secret of the user")))
                said = await told(explorer, widget)
            assert f"cannot be drawn: {MISTAKE}" in said
            assert "the rest goes on: go to another step, or leave with esc or q" in said
            assert "secret" not in said
            assert "\n" not in said
            assert said in explorer.app.messages.text
            assert reports(tmp_path) == 1
            await explorer.press("space")
            assert explorer.stop == "encoder.0.self_attention.context"
            explorer.app.failures.told.clear()


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


async def test_where_nobody_is_told_the_error_is_raised():
    @careful
    class Wrong(Widget):
        def render_lines(self, crop: Region) -> list[Strip]:
            raise RuntimeError("wrong")

    async with App[None]().run_test():
        with pytest.raises(RuntimeError, match="wrong"):
            Wrong().render_lines(Region(0, 0, 1, 1))


class Tool(ExplorerScreen[None]):
    """A tool that makes no mistake."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "wrong", "wrong")]

    def compose(self) -> ComposeResult:
        yield Static("the tool is there")

    def action_wrong(self) -> None:
        wrong()


class WrongWidget(Static):
    """A widget that ends with a mistake."""

    def on_mount(self) -> None:
        wrong()


class Composing(Tool):
    def compose(self) -> ComposeResult:
        yield Static("half of it")
        wrong()

    def on_mount(self) -> None:
        assert self.query_one(Static).size


class Mounting(Tool):
    def on_mount(self) -> None:
        wrong()


class Containing(Tool):
    def compose(self) -> ComposeResult:
        yield WrongWidget()


class Drawing(Tool):
    def compose(self) -> ComposeResult:
        class Undrawn(Static):
            def render(self) -> str:
                raise RuntimeError("secret of the user")

        yield Undrawn()


def wrong(*_: object) -> None:
    raise RuntimeError("secret of the user")


async def failed(explorer: Explorer, tmp_path: Path) -> str:
    """The messages, once the main screen answers."""
    told, messages = explorer.app.failures.told, explorer.app.messages
    await explorer.until(lambda: any(said in messages.text for said in told.values()))
    (said,) = told.values()
    assert MISTAKE in said
    assert "secret" not in said
    assert reports(tmp_path) == 1
    told.clear()
    return said


async def test_a_screen_that_cannot_be_shown_is_left_for_the_one_below(tmp_path: Path):
    async with exploring_what_fails() as explorer:
        for number, screen in enumerate((Composing, Mounting, Containing, Drawing), 2):
            results = list[object]()
            explorer.main.open(screen(), results.append)
            said = await failed(explorer, tmp_path)
            assert said.startswith(f"{screen.__name__.lower()} is closed again: ")
            await explorer.until(lambda: explorer.app.screen is explorer.main)
            assert results == [None]
            await explorer.press("space")
            assert explorer.place[0] == number
            await explorer.keys("question_mark")
            assert isinstance(explorer.app.screen, CardScreen)
            await explorer.press("escape")
        # a screen of which a widget ends takes those over it along
        tool = Tool()
        explorer.main.open(tool)
        await explorer.handled()
        tool.open(MessageScreen("Over", "text"))
        await explorer.handled()
        tool.mount(WrongWidget())
        await failed(explorer, tmp_path)
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        await explorer.press("space")


async def test_the_program_ends_where_a_widget_of_the_main_screen_does():
    async def explored() -> None:
        async with exploring_what_fails() as explorer:
            explorer.main.mount(WrongWidget())
            await explorer.until(lambda: explorer.app.return_code or explorer.app.failures.told)

    with pytest.raises(RuntimeError, match="secret"):
        await explored()


async def test_what_a_screen_cannot_do_is_said_and_left_undone(tmp_path: Path):
    async with exploring_what_fails() as explorer:
        tool, app = Tool(), explorer.app
        explorer.main.open(tool)
        await explorer.handled()
        requests = Requests(tool, app.worker, lambda: None)
        ways = {
            "key": lambda: explorer.send("x"),
            "timer": lambda: later(tool, 0.001, wrong),
            "later": lambda: tool.call_later(wrong),
            "work": lambda: requests.ask("wrong", wrong, wrong),
            "post": lambda: app.post(wrong),
        }
        for way in ways.values():
            way()
            assert (await failed(explorer, tmp_path)).startswith("not done: ")
            assert app.screen is tool
            await explorer.shown("the tool is there")
        # again, though it was told already
        for times in (1, 2):
            later(tool, 0.001, wrong)
            await explorer.until(lambda times=times: app.messages.text.count("not done") == len(ways) + times)


async def test_a_key_of_the_main_screen_that_cannot_be_done_loses_nothing(monkeypatch, tmp_path: Path):
    async with exploring_what_fails() as explorer:
        await explorer.press("space")
        monkeypatch.setattr(type(explorer.main), "action_bookmark", wrong)
        await explorer.keys("ctrl+b")
        assert (await failed(explorer, tmp_path)).startswith("not done: ")
        await explorer.press("space")
        assert explorer.place[0] == 3
        # an error that is another one each time is reported so often only
        pane = explorer.main.query_one(MatrixPane)
        for number in range(MOST_TOLD + 5):
            assert "cannot be drawn" in explorer.app.failures.undrawn(pane, RuntimeError(str(number)))
        assert reports(tmp_path) == MOST_TOLD


SAID = "cannot be drawn: the program made a mistake"


fail = failing(ValueError("zip() argument 2 is shorter than argument 1"))


async def test_the_whole_that_cannot_be_drawn_says_so_and_heals(monkeypatch: pytest.MonkeyPatch) -> None:
    async with exploring(WIDE, model="question", whole=None) as explorer:
        await explorer.press("space", "space")
        another = {"focus": "tab", "theme": "ctrl+t", "size": "", "step": "space"}
        for key in another.values():
            with monkeypatch.context() as broken:
                broken.setattr(WholePane, "_draw_band", fail)
                await (explorer.press(key) if key else explorer.resize(150, 44))
                assert explorer.app.is_running
                assert SAID in explorer.text.replace("\n", " ")
                assert "Self-attention" not in explorer.text, "nothing of before is left above the numbers of now"
                explorer.main.query_one(WholePane).refresh()
                await explorer.settled()
                assert SAID in explorer.text.replace("\n", " ")
                explorer.app.failures.told.clear()
            await explorer.press("space")
            explorer.app.clear_notifications()
            assert "Self-attention · layer 0" in explorer.text
            await explorer.handled()
            assert SAID not in explorer.text
            explorer.app.failures.told.clear()


async def test_a_scene_that_a_pane_cannot_show_is_said_in_its_place_and_no_other_is_shown(monkeypatch) -> None:
    async with exploring(WIDE, model="question") as explorer:
        for pane in (MatrixPair, ChartPane):
            await explorer.go("encoder.0.self_attention.query")
            with monkeypatch.context() as broken:
                broken.setattr(pane, "show_scene", fail)
                await explorer.press("space")
                assert SAID in explorer.text
                assert explorer.stop == "encoder.0.self_attention.key"
                explorer.app.failures.told.clear()
            await explorer.press("space")
            explorer.app.clear_notifications()
            await explorer.handled()
            assert SAID not in explorer.text


LAST_READ = "decoder.1.self_attention.norm"
"""The last step of which every weight is read."""


def opened(folder: Path) -> Session:
    """A session whose first layer is read and whose second is not."""
    shutil.copytree(REFERENCES / "gpt2", folder)
    session = open_session(ModelOptions(model=str(folder)), None, (1, 2, 3))
    assert session.trace["decoder.1.self_attention.norm"].shape == (3, 32)
    return session


def written_over(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\x00" * 100)
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize(
    ("change", "said"),
    [(partial(os.truncate, length=3000), "cut while it was open"), (written_over, "written to while it was open")],
)
async def test_the_explorer_says_so_and_stays_where_everything_is_read(change, said, tmp_path: Path):
    folder = tmp_path / "model"
    session = opened(folder)
    change(folder / "model.safetensors")
    async with exploring(WIDE, session=session, whole=True, at=LAST_READ) as explorer:
        place = explorer.place
        for keys in (["space"], ["space"], ["0", "space"]):
            await explorer.press(*keys)
            assert explorer.stop == LAST_READ
            assert explorer.place == place
            assert explorer.scene.view.name == LAST_READ
        await explorer.resize(*NARROW)
        await explorer.press("space")
        assert explorer.stop == LAST_READ
        assert explorer.scene.view.name == LAST_READ
        line = explorer.app.messages.text.split("\n")[0]
        lost = "tensor transformer.h.1.attn.c_attn.weight is lost: copy the file again and open it"
        assert f"{folder}/model.safetensors: {said}, {lost}" in line
        await explorer.press("backspace")
        assert explorer.stop != LAST_READ
        await explorer.prompt("e", "1.5")
        assert explorer.session.edits, "what is read can be worked with"
        await explorer.press("u", "}", "}", "}")
        assert explorer.stop in explorer.session.stops


@pytest.mark.parametrize("other", [b"something else", None])
async def test_another_file_under_its_name_or_none_changes_nothing(other: bytes | None, tmp_path: Path):
    session = opened(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    if other is not None:
        (tmp_path / "model" / "model.safetensors").write_bytes(other)
    async with exploring(WIDE, session=session, whole=True, at="output.probabilities") as explorer:
        assert "model.safetensors" not in explorer.app.messages.text
