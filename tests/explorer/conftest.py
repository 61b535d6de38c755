from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cheaper import cheaper
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from tui_transformer.explorer.shell.themes import THEMES

FOLDERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
NOTHING = object()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A terminal with all colours, and folders of the user that are empty."""
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith("TEXTUAL_")]:
        if name != "TEXTUAL_SNAPSHOT_TEMPDIR":
            monkeypatch.delenv(name)
    for name in FOLDERS:
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    with cheaper():
        yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the program runs, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(params=["colors", "no colors"])
def colors(request: pytest.FixtureRequest) -> None:
    """With colours, and without."""
    if request.param == "no colors":
        request.getfixturevalue("no_colors")


@pytest.fixture
def screen_text() -> Callable[[App[Any]], str]:
    """A function that gives the text on an app's screen."""
    return lambda app: "\n".join(strip.text for strip in app.screen._compositor.render_strips())


@pytest.fixture
def shows(screen_text: Callable[[App[Any]], str]) -> Callable[[App[Any], str], Awaitable[None]]:
    """A function that waits until a text is on an app's screen: after a new size that takes more than one round."""

    async def wait(app: App[Any], text: str) -> None:
        end = time.monotonic() + 60
        while text not in screen_text(app):
            assert time.monotonic() < end, screen_text(app)
            await asyncio.sleep(0.005)

    return wait


class Host(App[None]):
    """An app with some text, over which a screen is put."""

    CSS = "#below { text-wrap: nowrap; text-overflow: clip; }"

    def __init__(self, screen: Screen[Any], theme: str) -> None:
        super().__init__()
        for each in THEMES:
            self.register_theme(each)
        self.theme = theme
        self.over = screen
        self.result: object = NOTHING

    def compose(self) -> ComposeResult:
        yield Static("\n".join(["below " * 30] * 50), markup=False, id="below")

    def on_mount(self) -> None:
        self.push_screen(self.over, self.keep)

    def keep(self, result: object) -> None:
        self.result = result


@asynccontextmanager
async def opened(
    screen: Screen[Any], size: tuple[int, int] = (80, 24), theme: str = "tui-dark"
) -> AsyncIterator[Pilot[None]]:
    async with Host(screen, theme).run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot


Open = Callable[..., AbstractAsyncContextManager[Pilot[None]]]


@pytest.fixture
def open_screen() -> Open:
    """Open a screen over an app, whose `result` is what the screen gave, or the `nothing` fixture's object."""
    return opened


@pytest.fixture
def nothing() -> object:
    return NOTHING
