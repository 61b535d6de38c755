"""The explorer as a tool sees it: the session, and a few things to do with it; never the main screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget

from tui_transformer.explorer.shell.worker import Background, Task, Worker
from tui_transformer.session.exploration import Way
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import ViewState

Result = TypeVar("Result")


class Port(Protocol):
    """The explorer as a tool sees it."""

    @property
    def session(self) -> Session:
        """The session that is explored."""

    @property
    def position(self) -> Position:
        """The step and the cell that are shown."""

    @property
    def view(self) -> ViewState:
        """How one looks at it."""

    @property
    def worker(self) -> Worker:
        """The thread of the engine."""

    @property
    def background(self) -> Background:
        """Where work that goes on without its screen is kept."""

    def say(self, message: str, severity: SeverityLevel = "information") -> None:
        """A message that goes away by itself."""

    def written(self, name: str, says: str = "") -> None:
        """A file was written to `path_of` this name: hand it to a browser that has to keep it itself, and say so."""

    def hint(self, text: str) -> str:
        """A text that names keys by their meanings, `{undo} takes it back`, with the keys that are in use."""

    def ask(self, kind: str, cost: int, work: Callable[[Task], Result], done: Callable[[Result], None]) -> None:
        """Do work now if it is small, else on the worker; then use what it gave."""

    def change(self, session: Session, at: Position | None = None) -> None:
        """Explore something else, at a position if one is given; undo takes it back."""

    def turn_back(self, way: Way) -> bool:
        """Take the last change back, or make it again; whether there was one."""

    def visit(self, position: Position) -> None:
        """Show a cell in the matrix of the main screen."""

    def open(self, screen: Screen[Any], done: Callable[[Any], None] | None = None) -> None:
        """Put a screen in front; `done` is given its result."""

    def look(self, **changes: Any) -> None:
        """Look at it in another way from now on: parts of the view state by name."""

    def begin_tour(self, name: str) -> None:
        """Begin a tour of what is explored."""

    def banner(self, line: Widget) -> None:
        """Show a line above everything, unless one of its kind is there."""
