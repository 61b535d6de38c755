"""A text in a dialog that scrolls."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll

from tui_transformer.explorer.shell.actions.dialogs import PAGE
from tui_transformer.explorer.shell.keys import bindings


class Page(VerticalScroll):
    """Scrolls without movement in between; as high as its text, or the screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(PAGE)
    DEFAULT_CSS = """
    Page {
        height: auto;
        max-height: 100%;
        scrollbar-size-vertical: 1;
    }
    """

    def action_scroll(self, where: str) -> None:
        """Scroll at once."""
        getattr(self, f"scroll_{where}")(animate=False)
