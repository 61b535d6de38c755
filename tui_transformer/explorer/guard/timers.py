"""Timers that call however busy the machine is, and the collection of garbage while nobody waits.

A look through all objects takes as long as a repaint, so Python must not choose its moment.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from textual.app import App
from textual.message_pump import MessagePump
from textual.timer import Timer

from tui_transformer.explorer.guard.event_queue import InTurn


def later(owner: MessagePump, seconds: float, function: Callable[[], object]) -> Timer:
    """Call a function once after so many seconds, or as soon as there is time for it; not if its owner is gone."""
    return certain(owner.set_timer(seconds, function))


def certain(timer: Timer) -> Timer:
    """A timer that was just set to call once, and will.

    Textual passes over a call whose moment is gone before it is waited for. Of a timer that calls once that is the only
    one: what was put off by a millisecond on a busy machine would never be done.
    """
    timer._skip = False
    return timer


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
