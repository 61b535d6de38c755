"""Undo and redo: a list of states, each whole and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, Literal, TypeVar

State = TypeVar("State")
Way = Literal["undo", "redo"]
MOST = 100
NEAR = 2
"""Changes back and forth that are undone and made again at once; further away, all is worked out again."""


@dataclass(eq=False)
class History(Generic[State]):
    """The states before and after the current one."""

    current: State
    past: list[State] = field(default_factory=list)
    future: list[State] = field(default_factory=list)

    @property
    def near(self) -> list[State]:
        """The states a few changes away, the nearest first."""
        pairs = zip_longest(self.past[: -NEAR - 1 : -1], self.future[: -NEAR - 1 : -1])
        return [state for pair in pairs for state in pair if state is not None]

    @property
    def all(self) -> list[State]:
        """Every state."""
        return [*self.past, self.current, *self.future]

    def push(self, state: State) -> None:
        """A new current state; what was undone is forgotten."""
        self.past = [*self.past, self.current][-MOST:]
        self.current, self.future = state, []

    def turn(self, way: Way) -> bool:
        """Go back or forward one state; whether there was one."""
        return self.undo() if way == "undo" else self.redo()

    def undo(self) -> bool:
        """Go back one state; whether there was one."""
        if not self.past:
            return False
        self.future.append(self.current)
        self.current = self.past.pop()
        return True

    def redo(self) -> bool:
        """Go forward one state; whether there was one."""
        if not self.future:
            return False
        self.past.append(self.current)
        self.current = self.future.pop()
        return True
