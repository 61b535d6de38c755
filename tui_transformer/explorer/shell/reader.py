"""A box with a text to read and scroll."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll

from tui_transformer.explorer.shell.actions.dialogs import PAGE, READER
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.keys import Action, bindings


class Page(VerticalScroll):
    """Scrolls without movement in between."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(PAGE)

    def action_scroll(self, where: str) -> None:
        """Scroll at once."""
        getattr(self, f"scroll_{where}")(animate=False)


class Reader(Dialog[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(READER)
    ACTIONS: ClassVar[tuple[Action, ...]] = READER

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
        """The widgets of the page."""
        yield from ()
