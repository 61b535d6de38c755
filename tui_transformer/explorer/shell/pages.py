"""Texts to read in a dialog: help, and messages that are too long for a notice."""

from __future__ import annotations

from typing import Literal

from textual.app import ComposeResult
from textual.widgets import Static

from tui_transformer.explorer.shell.actions.dialogs import HELP_PAGE, READER
from tui_transformer.explorer.shell.dialog import Dialog, Page, plain
from tui_transformer.explorer.shell.keymap import with_own_keys
from tui_transformer.text.display import visible


class HelpScreen(Dialog[None]):
    """A page of help."""

    ACTIONS = HELP_PAGE

    def __init__(self, markdown: str, title: str) -> None:
        super().__init__(title)
        self._markdown = markdown

    def body(self) -> ComposeResult:
        """The text; what draws Markdown takes a while to import, so only now."""
        from tui_transformer.explorer.widgets.labels import MarkdownText

        with Page():
            yield MarkdownText("\n".join(map(visible, with_own_keys(self.app, self._markdown).splitlines())))


Kind = Literal["info", "error"]


class MessageScreen(Dialog[None]):
    """A text of any length, as it is; lines that are too wide are folded."""

    ACTIONS = READER
    DEFAULT_CSS = """
    MessageScreen {
        #box.-error {
            border: round $error;
            border-title-color: $error;
        }
    }
    """

    def __init__(self, title: str, text: str, kind: Kind = "info") -> None:
        super().__init__(title)
        self._text, self._kind = text, kind

    def body(self) -> ComposeResult:
        """The text."""
        with Page():
            yield Static(plain(self._text))

    def on_mount(self) -> None:
        """An error has its own colour."""
        self.query_one("#box").set_class(self._kind == "error", "-error")
