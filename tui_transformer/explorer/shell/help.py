"""Help: Markdown to read."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui_transformer.explorer.shell.dialog import Keys
from tui_transformer.explorer.shell.reader import Reader
from tui_transformer.text.display import visible


class HelpScreen(Reader):
    """A page of help.

    | Key | Does |
    | :- | :- |
    | ?, f1 | Closes, as esc does. |
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "leave", "Close", tooltip="Close the help", id="help.close", show=False),
    ]

    def __init__(self, markdown: str, title: str) -> None:
        super().__init__(title)
        self._markdown = markdown

    @property
    def keys(self) -> Keys:
        """The arrows scroll."""
        return {"↑↓": "scroll", "esc": "close"}

    def page(self) -> ComposeResult:
        """The text; what draws Markdown takes a while to import, so only now."""
        from tui_transformer.explorer.widgets.markdown import MarkdownText

        yield MarkdownText("\n".join(map(visible, self._markdown.splitlines())))
