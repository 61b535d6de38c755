"""Messages that go away by themselves, and mistakes that are said instead of ending the program."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from textual.app import App
from textual.notifications import Notification, SeverityLevel

from tui_transformer.errors import InputError
from tui_transformer.text.display import visible

MOST_KEPT = 200
"""Messages that are kept."""

SHORTEST = 0.05
"""Seconds for which a message is shown at least."""


@dataclass
class Notice(Notification):
    """A message that is shown for a moment even where the program was too busy to show it in time.

    Textual would set a timer to what is left of its time; where that is less than nothing, the timer goes round in a
    circle and the program answers no key any more.
    """

    @property
    def time_left(self) -> float:
        """Seconds for which it is still to be shown."""
        return max(super().time_left, SHORTEST)

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return super().time_left <= 0


class Messages:
    """The messages, the last first."""

    def __init__(self) -> None:
        self._said: deque[str] = deque(maxlen=MOST_KEPT)

    def keep(self, message: str, severity: SeverityLevel) -> None:
        """Keep a message and when it was said."""
        kind = "" if severity == "information" else f"{severity}: "
        self._said.appendleft(f"{time.strftime('%H:%M:%S')}  {kind}{message}")

    @property
    def text(self) -> str:
        """A line for each."""
        return "\n".join(self._said)


def say(app: App[Any], message: str, severity: SeverityLevel = "information") -> None:
    """Show a message that goes away by itself."""
    app.notify(visible(message), severity=severity, markup=False)


@runtime_checkable
class GoesOn(Protocol):
    """An app that goes on after a mistake of its own; in others the error is raised."""

    def goes_on(self, error: Exception) -> bool:
        """Tell what could not be done; whether the program goes on."""


@contextmanager
def saying_what_fails(app: App[Any]) -> Iterator[None]:
    """Say that a file could not be read, that memory is short, or that the program made a mistake."""
    try:
        yield
    except (InputError, MemoryError) as error:
        say(app, str(error) or "not enough memory", "error")
    except Exception as error:
        if not isinstance(app, GoesOn) or not app.goes_on(error):
            raise


async def called(app: App[Any], function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    """Call a function, or await what it gives; what fails is said."""
    with saying_what_fails(app):
        result = function(*arguments, **named)
        if isawaitable(result):
            await result
