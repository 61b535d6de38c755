"""The main screen as tools and its own parts are given it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.requests import Requests, Result
from tui_transformer.explorer.shell.saying import say
from tui_transformer.explorer.shell.worker import Background, Task, Worker
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import Session


class MainPort:
    """A `Port` on what the main screen explores, which can be gone through as well.

    Attributes:
        worker: The thread of the engine.
        background: Where work that goes on without its screen is kept.
        tour_begins: Begins a tour, by its name.
        tour_ends: Leaves the tour that goes on, if one does.
    """

    def __init__(
        self,
        explored: Exploration,
        presenter: Presenter,
        requests: Requests,
        worker: Worker,
        background: Background,
    ) -> None:
        """Everything that is changed here is shown by the presenter."""
        self.worker, self.background = worker, background
        self._explored, self._presenter, self._requests = explored, presenter, requests
        self._screen = presenter.panes.screen
        self.tour_begins: Callable[[str], None] = lambda _: None
        self.tour_ends: Callable[[], None] = lambda: None

    @property
    def session(self) -> Session:
        """The session that is explored."""
        return self._explored.session

    @property
    def position(self) -> Position:
        """The step and the cell that are shown."""
        return self._explored.position

    # What is shown

    def change(self, session: Session, at: Position | None = None) -> None:
        """Explore something else, at a position if one is given; undo takes it back. Another model ends a tour."""
        if (session.model.name, session.model.folder) != (self.session.model.name, self.session.model.folder):
            self.tour_ends()
        if at is not None:
            self._explored.trail.append(self.position)
            self._explored.position = at
        self._explored.history.push(session)
        self._presenter.show_session()

    def go(self, position: Position) -> None:
        """Show another stop or cell."""
        if position.stop != self.position.stop:
            self._explored.change_view(chart=0)
        self._explored.position = position
        self._presenter.show_position()

    def follow(self, position: Position) -> None:
        """Go to another cell, and remember where one came from."""
        self._explored.trail.append(self.position)
        self.go(position)

    def visit(self, position: Position) -> None:
        """Show a cell in the matrix, if what is explored now has its step."""
        if not self._explored.has(position.stop):
            self.say(f"{position.stop}: no step of what is explored now")
            return
        self._explored.trail.clear()
        self.go(position)
        self._presenter.panes.focus("matrix")

    # What is computed and said

    def ask(self, kind: str, cost: int, work: Callable[[Task], Result], done: Callable[[Result], None]) -> None:
        """Do work now if it is small, else on the worker; then use what it gave."""
        self._requests.ask(kind, cost, work, done)

    def say(self, message: str, severity: SeverityLevel = "information") -> None:
        """Show a message that goes away by itself."""
        say(self._screen.app, message, severity)

    def hint(self, text: str) -> str:
        """A text that names keys by their meanings, `{undo} takes it back`, with the keys that are in use."""
        return hint(self._screen.app, text)

    def open(self, screen: Screen[Any], done: Callable[[Any], None] | None = None) -> None:
        """Put a screen in front; `done` is given its result."""
        self._screen.open(screen, done)

    def keep_words(self, text: str) -> None:
        """Show the neighbours of a sum of words beside every embedding from now on."""
        self._explored.change_view(words=text)
        self._presenter.show_position()

    def begin_tour(self, name: str) -> None:
        """Begin a tour of what is explored."""
        self.tour_begins(name)

    def banner(self, line: Widget) -> None:
        """Show a line above everything, unless one of its kind is there."""
        if not self._screen.query(type(line)):
            self._screen.mount(line)
