"""How often a screen is drawn again, so that drawing takes a small share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.02
"""Of one core, what drawing may take."""

LEAST, MOST = 0.25, 5.0
"""Seconds between two drawings."""


class Throttle:
    """Counts what the screen's thread has computed, and says when it may draw again."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, spent: Callable[[], float] = time.thread_time
    ) -> None:
        """Begin at once; `spent` is the time that this thread has computed."""
        self._now, self._spent = now, spent
        self._at, self._used = -MOST, spent()

    def due(self) -> bool:
        """Whether to draw now; what is computed until the next call that says so counts as its cost."""
        now, used = self._now(), self._spent()
        wait = min(max((used - self._used) / SHARE, LEAST), MOST)
        if now - self._at < wait:
            return False
        self._at, self._used = now, used
        return True
