"""The browser as Textual drives it, for a page that comes back after its connection was lost."""

from __future__ import annotations

from functools import partial

from textual import events
from textual.drivers.web_driver import WebDriver
from textual.message import Message

from tui_transformer.explorer.guard.app import GuardedApp
from tui_transformer.explorer.guard.line import MeasuringDriver
from tui_transformer.gate import QUIT, REDRAW, SAY
from tui_transformer.text.guarded import end_awaited, end_guarded


class VisitorDriver(MeasuringDriver, WebDriver):
    """A driver that draws all again for a page that was away."""

    def process_message(self, message: Message) -> None:
        """Hand on what was read; escape also ends what the screen waits for."""
        if isinstance(message, events.Key) and message.key == "escape":
            end_awaited()
        super().process_message(message)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Do what whoever serves asks for; called on the thread that reads."""
        if packet_type == QUIT:
            end_guarded(for_good=True)
        if packet_type == REDRAW and isinstance(self._app, GuardedApp):
            self._app.post(self._app.draw_again)
        elif packet_type == SAY and isinstance(self._app, GuardedApp):
            self._app.post(partial(self._app.notify, str(payload.get("text", "")), markup=False))
        else:
            super().on_meta(packet_type, payload)
