"""The browser as Textual drives it, for a page that comes back after its connection was lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from textual import events
from textual.drivers.web_driver import WebDriver
from textual.message import Message

from tui_transformer.explorer.guard.line import MeasuringDriver
from tui_transformer.gate import QUIT, REDRAW, SAY
from tui_transformer.text.guarded import end_awaited, end_guarded


@runtime_checkable
class Shown(Protocol):
    """An app that draws everything again, and says something, when a thread asks for it."""

    def post(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run a function on the screen's thread."""

    def draw_again(self) -> None:
        """Write all of the screen."""

    def say(self, message: str) -> None:
        """Show a message that goes away by itself."""


class VisitorDriver(MeasuringDriver, WebDriver):
    """A driver that draws all again for a page that was away."""

    def process_message(self, message: Message) -> None:
        """Hand on what was read; escape also ends what the screen waits for."""
        if isinstance(message, events.Key) and message.key == "escape":
            end_awaited()
        super().process_message(message)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Do what whoever serves asks for; called on the thread that reads."""
        app: object = self._app
        if packet_type == QUIT:
            end_guarded(for_good=True)
        if packet_type == REDRAW and isinstance(app, Shown):
            app.post(app.draw_again)
        elif packet_type == SAY and isinstance(app, Shown):
            app.post(app.say, str(payload.get("text", "")))
        else:
            super().on_meta(packet_type, payload)
