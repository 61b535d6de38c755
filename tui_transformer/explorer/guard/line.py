"""The line to the terminal: how long it takes until what was written is shown, which is measured and not guessed.

A terminal that is asked where its cursor is answers when it has drawn all that came before the question.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import IO

from textual import events
from textual.driver import Driver
from textual.message import Message

QUESTION = "\x1b[6n"
SLOW = 0.1
"""Seconds from the question to the answer of a line that is too slow for motion."""

LOST = 5.0
"""Seconds after which no answer will come: it is asked again then."""


class MeasuringDriver(Driver):
    """A driver that can say how quick the line is.

    Attributes:
        took: Seconds that the last answer took; infinity before the first.
        asked: When a question was asked that has no answer; None where every one has.
    """

    took = math.inf
    asked: float | None = None

    def measure(self) -> None:
        """Ask, unless an answer is still awaited."""
        now = time.monotonic()
        if self.asked is None or now - self.asked > LOST:
            self.asked = now
            self.write(QUESTION)
            self.flush()

    @property
    def is_quick(self) -> bool:
        """Whether the last answer came soon, and none is overdue."""
        return self.took <= SLOW and (self.asked is None or time.monotonic() - self.asked <= SLOW)

    def process_message(self, message: Message) -> None:
        """Hand on what was read; called on the thread that reads."""
        if isinstance(message, events.CursorPosition):
            if self.asked is not None:
                self.took, self.asked = time.monotonic() - self.asked, None
        else:
            super().process_message(message)


class Output:
    """What is written to. Where the terminal is gone nothing is any more, and the thread that writes goes on.

    Of Textual 8.2: it would end, and the program would wait for good for room in the queue that it reads.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()
