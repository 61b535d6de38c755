"""Undo and redo: a list of states, each whole and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State")
MOST = 100


@dataclass(eq=False)
class History(Generic[State]):
    """The states before and after the current one."""

    current: State
    past: list[State] = field(default_factory=list)
    future: list[State] = field(default_factory=list)

    def push(self, state: State) -> None:
        """A new current state; what was undone is forgotten."""
        self.past = [*self.past, self.current][-MOST:]
        self.current, self.future = state, []

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
