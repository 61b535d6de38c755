"""Help: Markdown to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui_transformer.explorer.screens.dialog import Keys
from tui_transformer.explorer.screens.reader import Reader
from tui_transformer.explorer.session import VOCABULARY
from tui_transformer.guide.texts import help_text
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.explorer.main_screen import MainScreen


def open_from(screen: MainScreen) -> None:
    """The keys of the focused pane, and those of every pane."""
    topic = VOCABULARY if screen.active == "matrix" and screen.position.stop == VOCABULARY else screen.active
    screen.app.push_screen(HelpScreen(f"{help_text(topic)}\n\n{help_text('general')}", "Help"))


class HelpScreen(Reader):
    """A page of help.

    | Key | Does |
    | :- | :- |
    | ?, f1 | Closes, as esc does. |
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "leave", "Close", tooltip="Close the help", id="help.close", show=False),
    ]

    DEFAULT_CSS = """
    HelpScreen {
        Markdown {
            background: transparent;
            padding: 0 1;
        }
        MarkdownBlock { margin: 0 0 1 0; }
        MarkdownBlock:last-child { margin: 0; }
        MarkdownH1, MarkdownH2, MarkdownH3 {
            content-align: left middle;
            color: $accent;
            background: transparent;
            text-style: bold;
            margin: 0;
        }
        MarkdownH1 { margin: 0 0 1 0; }
        MarkdownBlock, MarkdownBlock:dark, MarkdownBlock:light {
            & > .code_inline { color: $accent !important; background: transparent !important; text-style: bold; }
        }
    }
    """

    def __init__(self, markdown: str, title: str) -> None:
        super().__init__(title)
        self._markdown = markdown

    @property
    def keys(self) -> Keys:
        """The arrows scroll."""
        return {"↑↓": "scroll", "esc": "close"}

    def page(self) -> ComposeResult:
        """The text; Textual's Markdown takes a while to import, so only now."""
        from textual.widgets import Markdown

        yield Markdown("\n".join(map(visible, self._markdown.splitlines())), open_links=False)
