"""The texts of a screen, each in a `Static` of its name, written again only where they change."""

from __future__ import annotations

from rich.text import Text
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

Line = Text | Content | str


class Written:
    """The texts under a widget."""

    def __init__(self, around: Widget) -> None:
        self._around = around
        self._lines: dict[str, Line] = {}

    def write(self, name: str, line: Line, *, grows: bool = False) -> None:
        """Write a text, if it is another; one that grows with what it says is given room for it."""
        before = self._lines.get(name)
        if before != line:
            self._lines[name] = line
            layout = grows and (before is None or len(before) != len(line))
            self._around.query_one(f"#{name}", Static).update(line, layout=layout)
