"""A box with a text to read and scroll."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from tui_transformer.explorer.shell.dialog import Dialog


class Page(VerticalScroll):
    """Scrolls without movement in between.

    | Key | Does |
    | :- | :- |
    | up, k | A line up. |
    | down, j | A line down. |
    | pageup, ctrl+u | A page up. |
    | pagedown, ctrl+d, space | A page down. |
    | home, g | To the top. |
    | end, G | To the bottom. |
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll('up')", "Up", tooltip="A line up", id="page.up", show=False),
        Binding("down,j", "scroll('down')", "Down", tooltip="A line down", id="page.down", show=False),
        Binding("pageup,ctrl+u", "scroll('page_up')", "Page up", tooltip="A page up", id="page.page-up", show=False),
        Binding(
            "pagedown,ctrl+d,space",
            "scroll('page_down')",
            "Page down",
            tooltip="A page down",
            id="page.page-down",
            show=False,
        ),
        Binding("home,g", "scroll('home')", "Top", tooltip="To the top", id="page.top", show=False),
        Binding("end,G", "scroll('end')", "Bottom", tooltip="To the bottom", id="page.bottom", show=False),
    ]

    def action_scroll(self, where: str) -> None:
        """Scroll at once."""
        getattr(self, f"scroll_{where}")(animate=False)


class Reader(Dialog[None]):
    """A text to read.

    | Key | Does |
    | :- | :- |
    | q, enter | Closes, as esc does. |
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter", "leave", "Close", tooltip="Close the text", id="reader.close", show=False),
    ]

    DEFAULT_CSS = """
    Reader {
        Page {
            height: auto;
            max-height: 100%;
            scrollbar-size-vertical: 1;
        }
    }
    """

    def body(self) -> ComposeResult:
        """The page, as high as its text or the screen."""
        with Page():
            yield from self.page()

    def page(self) -> ComposeResult:
        """What is to be read."""
        yield from ()
