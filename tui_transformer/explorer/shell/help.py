"""Help: Markdown to read."""

from __future__ import annotations

from textual.app import ComposeResult

from tui_transformer.explorer.shell.actions.dialogs import HELP_PAGE
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.keymap import with_own_keys
from tui_transformer.explorer.shell.page import Page
from tui_transformer.text.display import visible


class HelpScreen(Dialog[None]):
    """A page of help."""

    ACTIONS = HELP_PAGE

    def __init__(self, markdown: str, title: str) -> None:
        super().__init__(title)
        self._markdown = markdown

    def body(self) -> ComposeResult:
        """The text; what draws Markdown takes a while to import, so only now."""
        from tui_transformer.explorer.widgets.markdown import MarkdownText

        with Page():
            yield MarkdownText("\n".join(map(visible, with_own_keys(self.app, self._markdown).splitlines())))
