"""Help: Markdown to read."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from tui_transformer.explorer.shell.actions.dialogs import HELP_PAGE
from tui_transformer.explorer.shell.keymap import with_own_keys
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.reader import Reader
from tui_transformer.text.display import visible


class HelpScreen(Reader):
    """A page of help."""

    ACTIONS = HELP_PAGE
    BINDINGS: ClassVar[list[BindingType]] = bindings(HELP_PAGE)

    def __init__(self, markdown: str, title: str) -> None:
        super().__init__(title)
        self._markdown = markdown

    def page(self) -> ComposeResult:
        """The text; what draws Markdown takes a while to import, so only now."""
        from tui_transformer.explorer.widgets.markdown import MarkdownText

        yield MarkdownText("\n".join(map(visible, with_own_keys(self.app, self._markdown).splitlines())))
