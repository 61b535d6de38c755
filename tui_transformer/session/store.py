"""The store: results under what they are of, whoever worked them out and however late they come."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.records import dataclass, fields, is_dataclass
from tui_transformer.session.session import Session

Result = TypeVar("Result")

MOST_BYTES = 1 << 25
"""Bytes of results that are kept; those of the trace itself are not among them."""

AT_ONCE = 2_000_000
"""Floating-point operations that are done between two key presses; more go to the worker."""

ENDLESS = float("inf")
"""Operations that are no limit."""


class CancelledError(Exception):
    """The work is not wanted any more."""


class Key(NamedTuple):
    """All that a part of a scene is a function of: the session, the step or weight, and what of its cells is shown."""

    session: Session
    stop: str
    what: Hashable


@dataclass(frozen=True, eq=False)
class Part(Generic[Result]):
    """Something that a scene shows.

    Attributes:
        key: What it is of.
        work: Works it out, given what is told what is being computed and may raise to end it.
    """

    key: Key
    work: Callable[[Report], Result]


@dataclass(frozen=True, eq=False)
class Failed:
    """In the place of a result, the reason why there is none."""

    error: Exception


def worked_out(part: Part[Result], report: Report) -> Result | Failed:
    """The result of a part, or why there is none: the rest of the scene is drawn without it."""
    try:
        return part.work(report)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - told and reported where the scene is shown
        return Failed(error)


class Store:
    """Results of the sessions that are near. Nothing is kept for a place on the screen, so none can be at a wrong one.

    What is dropped first is of another session, then what is farthest from the current stop; never what the scene on
    the screen is made of.

    Attributes:
        used: What the scene that is being made, or was made last, has asked for.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._held = most_bytes, 0
        self.used: set[Key] = set()
        self._results: dict[Key, tuple[Any, int]] = {}
        self._failed: set[Key] = set()

    def find(self, key: Key) -> Any:
        """The result of a part, or why there is none; None where it is not there."""
        self.used.add(key)
        return self._results.get(key, (None, 0))[0]

    def put(self, key: Key, result: object) -> None:
        """Keep the result of a part, or why there is none, early or late."""
        before, size = self._results.get(key, (None, 0))[1], _bytes_of(result)
        self._results[key] = result, size
        self._held += size - before
        (self._failed.add if isinstance(result, Failed) else self._failed.discard)(key)

    def make_room(self, session: Session, stop: str) -> None:
        """Drop results that are far from a stop of a session, where there are too many."""
        if self._held <= self._most:
            return
        places = {name: place for place, name in enumerate(session.stops)}
        here = places.get(stop, 0)
        unused = [key for key in self._results if key not in self.used]
        unused.sort(key=lambda key: (key[0] is session, -abs(places.get(key[1], 0) - here)))
        for key in unused:
            if self._held <= self._most // 2:
                return
            self._drop([key])

    def keep(self, sessions: Iterable[Session]) -> None:
        """Keep the results of these sessions alone."""
        near = set(sessions)
        self._drop([key for key in self._results if key[0] not in near])

    def forget_failures(self) -> None:
        """Let what failed be tried again."""
        if self._failed:
            self._drop(self._failed & self._results.keys())
            self._failed.clear()

    def _drop(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._held -= self._results.pop(key)[1]


def _bytes_of(result: Any) -> int:
    """Bytes of the arrays that a result owns; those that look at the values of a trace take no more."""
    if isinstance(result, np.ndarray):
        return result.nbytes if result.base is None else 0
    if isinstance(result, tuple):
        return sum(map(_bytes_of, result))
    return sum(_bytes_of(getattr(result, name)) for name in _held_by(result.__class__))


@cache
def _held_by(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that may hold arrays; none of anything else."""
    return tuple(each.name for each in fields(kind) if each.name != "window") if is_dataclass(kind) else ()


class Reading:
    """One reading of the store for a scene: what costs little is worked out as it is asked for, the rest is missing.

    Attributes:
        missing: Parts that the scene lacks, the most wanted first, with their costs.
        failed: The reasons of those that failed as they were asked for.
    """

    def __init__(self, store: Store, *, here: bool, most: float = AT_ONCE) -> None:
        """Read; `here` says whether work of `most` operations may be done on the screen's own thread."""
        self._store, self._here, self._left = store, here, most
        self.missing: list[tuple[Part[Any], int]] = []
        self.failed: list[Exception] = []
        store.used.clear()

    def get(
        self, session: Session, stop: str, what: Hashable, cost: Callable[[], int], work: Callable[[Report], Result]
    ) -> Result | None:
        """A result, given what it is of, its cost and how it is made; None where it is missing, or there is none."""
        key = Key(session, stop, what)
        result: Result | Failed | None = self._store.find(key)
        if result is None:
            part, operations = Part(key, work), cost()
            if not self._here or operations > self._left:
                self.missing.append((part, operations))
                return None
            self._left -= operations
            result = worked_out(part, lambda _: None)
            self._store.put(key, result)
            if isinstance(result, Failed):
                self.failed.append(result.error)
        return None if isinstance(result, Failed) else result
