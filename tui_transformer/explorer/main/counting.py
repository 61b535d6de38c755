"""Counts before movements, as in vi: 5 j is five lines down, 1 0 space ten steps on.

A digit goes to its pane, at once. Where a step or a movement by letters follows within a moment, the digits were its
count: the pane that had the keys has them again, and the movement is made as often. Arrows take no count: a digit
and an arrow are a pane and a movement in it. As long as the moment lasts, the line of keys says what would be
counted; the key for back, escape, ends it.
"""

from __future__ import annotations

from textual import events
from textual.app import App
from textual.timer import Timer

from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.keymap import keys_of
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.view_state import ViewState

MOMENT = 1.0
"""Seconds between a digit and what it belongs to."""

MOST = 999
"""Times that a movement is made at most."""

COUNTED = ("step.", "head.", "layer.", "sublayer.", "cursor.left", "cursor.right", "cursor.up", "cursor.down")
ENDING = ("back",)
"""Meanings whose keys end a count."""
ARROWS = {"left", "right", "up", "down"}


class Counting:
    """Digits that were typed, and where one was before them.

    Attributes:
        moment: Seconds between a digit and what it belongs to.
    """

    def __init__(self, explored: Exploration, presenter: Presenter) -> None:
        self.moment = MOMENT
        self._explored, self._presenter, self._screen = explored, presenter, presenter.panes.screen
        self._digits, self._since = "", 0.0
        self._view: ViewState | None = None
        self._timer: Timer | None = None

    def takes(self, event: events.Key) -> bool:
        """Whether a key ends a count, or was made as often as one said."""
        if self._digits and event.time - self._since > self.moment:
            self.end()
        if event.character is not None and event.character.isascii() and event.character.isdecimal():
            self._digit(event.character, event.time)
            return False
        digits = self._digits
        self.end()
        app = self._screen.app
        if digits and event.key in keys_of(app, ENDING):
            return True
        if not digits or event.key in ARROWS or event.key not in keys_of(app, COUNTED):
            return False
        before, now = self._view, self._explored.view
        if before is not None and (before.active, before.whole, before.zoom) != (now.active, now.whole, now.zoom):
            self._explored.change_view(whole=before.whole, zoom=before.zoom)
            self._presenter.focus(before.active)  # as before the first digit
        app.call_later(_type, app, event.key, event.character, min(int(digits), MOST))
        return True

    def _digit(self, digit: str, now: float) -> None:
        """Say the count, until the moment is over."""
        if not self._digits:
            self._view = self._explored.view
            if digit == "0":
                return
        self._digits, self._since = (self._digits + digit)[-3:], now
        self._presenter.lines.count(self._digits)
        if self._timer is not None:
            self._timer.stop()
        self._timer = later(self._screen, self.moment, self.end)

    def end(self) -> None:
        """Count no key that is typed next."""
        if self._digits:
            self._digits = ""
            self._presenter.lines.count("")


def _type(app: App[object], key: str, character: str | None, times: int) -> None:
    """Type a key so often; called by the app, since what a screen sends goes no further than the screen."""
    for _ in range(times):
        app.post_message(events.Key(key, character))
