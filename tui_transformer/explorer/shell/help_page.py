"""A page of help, drawn by one widget: Textual's own makes one of every paragraph, which takes a second for a page."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.style import Style
from rich.theme import Theme
from textual.app import ComposeResult
from textual.widgets import Static

from tui_transformer.explorer.shell.actions.dialogs import HELP_PAGE
from tui_transformer.explorer.shell.dialog import Dialog, Page
from tui_transformer.explorer.shell.keymap import keymap_of, page_with_keys
from tui_transformer.text.display import visible


class _Heading(Heading):
    """A heading of any level, on the left."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Page(Markdown):
    """A page whose parts are in styles of its own."""

    elements: ClassVar = Markdown.elements | {"heading_open": _Heading}

    def __init__(self, text: str, strong: Style) -> None:
        super().__init__(text, hyperlinks=False)
        parts = ("h1", "h2", "h3", "code", "item.bullet", "table.header")
        self._theme = Theme({f"markdown.{part}": strong for part in parts})

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(self._theme):
            yield from super().__rich_console__(console, options)


class MarkdownText(Static):
    """A page of Markdown."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"markdown-text--strong"}
    DEFAULT_CSS = """
    MarkdownText {
        padding: 0 1;
        & > .markdown-text--strong { color: $accent; text-style: bold; }
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def on_mount(self) -> None:
        self.update(_Page(self._text, self.get_component_rich_style("markdown-text--strong", partial=True)))


class HelpScreen(Dialog[None]):
    """A page of help, in whose text `{key:undo}` is the key for that."""

    ACTIONS = HELP_PAGE

    def __init__(self, markdown: str, title: str, *, direct: bool = True) -> None:
        super().__init__(title)
        self._markdown, self._direct = markdown, direct

    def body(self) -> ComposeResult:
        with Page():
            page = page_with_keys(self._markdown, keymap_of(self.app), direct=self._direct)
            yield MarkdownText("\n".join(map(visible, page.splitlines())))
