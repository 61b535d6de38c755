"""Garbage of long lives is looked for while nobody waits: a look through all objects takes as long as a repaint."""

from __future__ import annotations

import gc

from textual.app import App

from tui_transformer.explorer.guard.timers import later
from tui_transformer.explorer.shell.event_queue import InTurn

EVERY = 1.0
"""Seconds after which it is seen whether keys rest."""

RARE = 1_000, 10, 10
"""Thresholds of collections while they do not: while a key is held all objects are looked through once a second."""


class Collecting:
    """Collections of an app, from the first screen on until its end.

    Attributes:
        due: Whether much was left behind, by a screen, so that no more is waited until keys rest.
    """

    def __init__(self, app: App[None], in_turn: InTurn, every: float = EVERY) -> None:
        """Collect nothing by itself yet; then look every so many seconds whether keys rest."""
        self._app, self._in_turn, self._every = app, in_turn, every
        self._usual = gc.get_threshold()
        self._taken = 0
        self.due = False

    def begin(self) -> None:
        """Leave out the objects of start-up, which stay for good, and collect whenever keys rest."""
        gc.freeze()
        gc.set_threshold(*RARE)
        gc.enable()
        later(self._app, self._every, self._look)

    def end(self) -> None:
        """Collect as any program does."""
        gc.set_threshold(*self._usual)

    def _look(self) -> None:
        """Collect where no event came for a while or much was left behind, and something was made since then."""
        rests = self._in_turn.idle and self._in_turn.taken == self._taken
        self._taken = self._in_turn.taken
        if self.due or (rests and gc.get_count()[2]):
            self.due = False
            gc.collect()
        later(self._app, self._every, self._look)
