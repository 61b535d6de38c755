"""The main screen as tools and its own parts are given it."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget

from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.user_files import hand_over
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.session.exploration import Exploration, Way
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session


class MainPort:
    """A `Port` on what the main screen explores, which can be gone through as well.

    Attributes:
        worker: The thread of the engine.
        background: Where work that goes on without its screen is kept.
        ask: Does work now if it is small, else on the worker; then uses what it gave.
        say: Shows a message that goes away by itself.
        open: Puts a screen in front, and gives its result to a function.
        begin_tour: Begins a tour of what is explored, by its name.
        end_tour: Leaves the tour that goes on, if one does.
    """

    def __init__(
        self,
        explored: Exploration,
        presenter: Presenter,
        requests: Requests,
        worker: Worker,
        background: Background,
    ) -> None:
        self.worker, self.background = worker, background
        self._explored, self._presenter, self._screen = explored, presenter, presenter.panes.screen
        self.ask, self.say, self.open = requests.ask, self._screen.say, self._screen.open
        self.begin_tour: Callable[[str], None] = lambda _: None
        self.end_tour: Callable[[], None] = lambda: None

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
            self.end_tour()
        if at is not None:
            self._explored.trail.append(self.position)
            self._explored.position = at
        self._explored.history.push(session)
        self._presenter.show_session()

    def turn_back(self, way: Way) -> bool:
        """Take the last change back, or make it again; whether there was one."""
        turned = self._explored.history.turn(way)
        if turned:
            self._presenter.show_session()
        return turned

    def go(self, position: Position) -> None:
        """Show another stop or cell."""
        if position.stop != self.position.stop:
            self._explored.change_view(chart=0)
        self._explored.position = position
        self._presenter.show()

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
        self._presenter.focus("matrix")

    # What is said

    def written(self, name: str, says: str = "") -> None:
        """Hand a file that was written to a browser that has to keep it itself, and say so."""
        became = hand_over(self._screen.app, name)
        self.say(says or became)

    def hint(self, text: str) -> str:
        """A text that names keys by their meanings, `{undo} takes it back`, with the keys that are in use."""
        return hint(self._screen.app, text)

    def keep_words(self, text: str) -> None:
        """Show the neighbours of a sum of words beside every embedding from now on."""
        self._explored.change_view(words=text)
        self._presenter.show()

    def banner(self, line: Widget) -> None:
        """Show a line above everything, unless one of its kind is there."""
        if not self._screen.query(type(line)):
            self._screen.mount(line)
