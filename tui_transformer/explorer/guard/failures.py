"""Mistakes of the program after which it goes on: each is told once, in one line, and reported in a file.

A widget that cannot be drawn says so in its place. What a key, a message or a result cannot do is left undone. A screen
that cannot be shown, or of which a widget has ended, is left for the one below. Only without the main screen, or where
a widget of that one has ended, the program ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from textual._context import active_message_pump
from textual.app import App
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from tui_transformer import crash
from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.notifications import say
from tui_transformer.text.display import visible

MOST_TOLD = 20
"""Failures that are told; an error that is another one each time is not reported without end."""

NEEDED = 2
"""Screens without which there is no program: Textual's own at the bottom, and the main one."""


class Failures:
    """Mistakes that were told, and the screens that are left for them.

    Attributes:
        told: What was said of each.
    """

    def __init__(self, app: App[Any], advice: Callable[[], str]) -> None:
        """Mistakes of an app; `advice` says what the user can do where a widget cannot be drawn."""
        self._app, self._advice = app, advice
        self._leaving: Screen[Any] | None = None
        self.told: dict[tuple[str, str, str], str] = {}

    def undrawn(self, widget: Widget, error: Exception) -> str:
        """Tell that a widget cannot be drawn, where that was not told; what is to be said in its place."""
        return self._tell(f"{_title(widget)} cannot be drawn", error, self._advice(), again=False)

    def handled(self, error: Exception) -> bool:
        """Tell what a message or a key could not do, or leave the screen that is not shown yet.

        Returns:
            Whether the program goes on.
        """
        if not self._has_main:
            return False
        if self._leaving in self._app.screen_stack:
            return True
        screen = _screen_of(active_message_pump.get(None))
        if screen is not None and not screen.is_mounted:
            return self.ended(error)
        self._tell("not done", error)
        return True

    def ended(self, error: Exception) -> bool:
        """Leave the screen of the widget that is ending with an error.

        Returns:
            Whether the program goes on.
        """
        widget = active_message_pump.get(None)
        if not self._has_main or not isinstance(widget, Widget):
            return False
        screen = _screen_of(widget)
        if screen in self._app.screen_stack[:NEEDED]:
            return False
        if screen is None or screen not in self._app.screen_stack:
            self._tell("not done", error)
        elif screen is not self._leaving:
            self._leaving = screen
            self._app.call_later(self._leave, screen)  # first: nothing can be said on a screen that cannot be drawn
            self._tell(f"{_name(screen)} is closed again", error)
        return True

    @property
    def _has_main(self) -> bool:
        screens = self._app.screen_stack if self._app._screen_stack else []
        return len(screens) >= NEEDED and screens[NEEDED - 1].is_mounted

    def _leave(self, screen: Screen[Any]) -> None:
        screens = self._app.screen_stack
        for each in reversed(screens[screens.index(screen) :] if screen in screens else []):
            each.dismiss()

    def _tell(self, what: str, error: Exception, *more: str, again: bool = True) -> str:
        """Say what failed, and report it where it is new."""
        failure = what, type(error).__name__, str(error)
        is_known = failure in self.told
        if not is_known and len(self.told) >= MOST_TOLD:
            return what
        if not is_known:
            self.told[failure] = visible("; ".join((f"{what}: {_reason(error)}", *more)))
        if again or not is_known:
            self._app.call_later(say, self._app, self.told[failure], "error")
        return self.told[failure]


def _screen_of(node: object) -> Screen[Any] | None:
    nodes = node.ancestors_with_self if isinstance(node, DOMNode) else []
    return next((each for each in nodes if isinstance(each, Screen)), None)


def _title(widget: Widget) -> str:
    """Name of a widget on the screen: the title of its border, or of what it is in."""
    for each in widget.ancestors_with_self:
        title = getattr(each, "border_title", None)
        if title:
            return title.plain if isinstance(title, Content) else str(title)
    return type(widget).__name__


def _name(screen: Screen[Any]) -> str:
    """Name of a screen: `lens` for `LensScreen`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(screen).__name__.removesuffix("Screen")).lower()


def _reason(error: Exception) -> str:
    """Message that the user can act upon, or the report of a mistake of the program."""
    if isinstance(error, InputError | MemoryError):
        return str(error) or "not enough memory"
    return crash.message(error).replace("\n", "; ")
