"""Markdown in one widget: Textual's own makes one of every paragraph, which takes a second for a page of help."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown
from rich.style import Style
from rich.theme import Theme
from textual.widgets import Static


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
