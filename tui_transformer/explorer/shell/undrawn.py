"""Widgets that could not be drawn: told once, and said in its place as long as it cannot."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.content import Content
from textual.widget import Widget

from tui_transformer import crash
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.saying import say
from tui_transformer.text.display import visible

GO_ON = "the rest goes on: go to another step, or leave with esc or q"
MOST_TOLD = 20
"""Failures that are told; an error that is another one each time is not reported without end."""


class Undrawn:
    """Failures of widgets to draw themselves.

    Attributes:
        told: What was said of each.
    """

    def __init__(self, app: App[Any]) -> None:
        """Nothing failed yet."""
        self._app = app
        self.told: dict[tuple[str, str, str], str] = {}

    def tell(self, widget: Widget, error: Exception) -> str:
        """Tell that a widget cannot be drawn, where that was not told; what is to be said in its place."""
        name = _name(widget)
        failure = name, type(error).__name__, str(error)
        if failure not in self.told:
            if len(self.told) >= MOST_TOLD:
                return f"{name} cannot be drawn"
            self.told[failure] = visible(f"{name} cannot be drawn: {_reason(error)}; {GO_ON}")
            self._app.call_later(say, self._app, self.told[failure], "error")
        return self.told[failure]


def _name(widget: Widget) -> str:
    """What a widget is called on the screen: the title of its border, or of what it is in."""
    for each in widget.ancestors_with_self:
        title = getattr(each, "border_title", None)
        if title:
            return title.plain if isinstance(title, Content) else str(title)
    return type(widget).__name__


def _reason(error: Exception) -> str:
    """What the user can do something about, or the report of a mistake of the program."""
    if isinstance(error, InputError | MemoryError):
        return str(error) or "not enough memory"
    return crash.message(error).replace("\n", "; ")
