from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from tui_transformer.explorer.shell.themes import THEMES

NOTHING = object()
SIZES = [(160, 45), (80, 24), (40, 12)]


class Host(App[None]):
    """An app with some text, over which a screen is put."""

    def __init__(self, screen: Screen[Any], theme: str) -> None:
        super().__init__()
        for each in THEMES:
            self.register_theme(each)
        self.theme = theme
        self.over = screen
        self.result: object = NOTHING

    def compose(self) -> ComposeResult:
        yield Static("below " * 2000, markup=False)

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
