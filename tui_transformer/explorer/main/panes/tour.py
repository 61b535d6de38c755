"""The panel that leads a tour."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tui_transformer.explorer.shell.actions import TOUR
from tui_transformer.explorer.shell.dialog import Keys, key_line, plain
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.guide.texts import Stop
from tui_transformer.text.display import visible

KEYS: Keys = {"→": "next", "←": "back", "esc": "leave"}
ROOM = 120
"""Columns of a screen on which the panel leaves the sides free."""


class TourPanel(VerticalScroll, can_focus=True):
    """Says what a stop of the tour is about. It lies over the lower right of the screen, and is not modal."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TOUR)

    DEFAULT_CSS = """
    TourPanel {
        overlay: screen;
        constrain: inside inside;
        position: absolute;
        offset: 100vw 100vh;
        width: 42;
        height: auto;
        max-height: 14;
        margin: 0 0 1 0;
        scrollbar-size-vertical: 1;
        background: $background;
        border: round $border-blurred;
        border-title-color: $foreground;
        border-title-style: bold;
        border-subtitle-align: right;
        &:focus {
            border: round $accent;
            border-title-color: $accent;
        }
        &.-full {
            width: 100vw;
            max-height: 9;
        }
        Static { height: auto; padding: 0 1; }
    }
    """

    class Asked(Message):
        """Something that the panel asks for."""

    class Next(Asked):
        """The next stop is wanted."""

    class Back(Asked):
        """The stop before is wanted."""

    class Left(Asked):
        """The tour is left."""

    def compose(self) -> ComposeResult:
        """The text; title, number and keys are in the border."""
        yield Static()

    def on_mount(self) -> None:
        """Follow the size of the screen."""
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._fit())
        self._fit()

    def show(self, stop: Stop, number: int, total: int) -> None:
        """Show a stop: the number-th (from 1) of so many."""
        self.border_title = Content(f"{number} of {total} · {visible(stop.title)}")
        self.border_subtitle = key_line(KEYS)
        self.query_one(Static).update(plain(stop.text))
        self.scroll_home(animate=False)

    def action_ask(self, what: str) -> None:
        """Say what is wanted."""
        self.post_message(_ASKED[what]())

    def _fit(self) -> None:
        self.set_class(self.screen.size.width < ROOM, "-full")


_ASKED: dict[str, type[TourPanel.Asked]] = {"Next": TourPanel.Next, "Back": TourPanel.Back, "Left": TourPanel.Left}
