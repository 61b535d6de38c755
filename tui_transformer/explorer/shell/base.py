"""Base of every screen of the explorer: opened and left safely, however fast keys come and however late results do.

And the explorer as a tool sees it: the session, and a few things to do with it; never the main screen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from textual.await_complete import AwaitComplete
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget

from tui_transformer.explorer.guard.app import forget_drawn, guards_messages, is_there, keeps_keys
from tui_transformer.explorer.guard.failures import called, say
from tui_transformer.explorer.shell.keys import Action, bindings
from tui_transformer.explorer.shell.worker import Background, Task, Worker
from tui_transformer.explorer.widgets.labels import INK_CLASSES
from tui_transformer.session.exploration import Way
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import ViewState
from tui_transformer.text.display import visible

Result = TypeVar("Result")
Other = TypeVar("Other")


@keeps_keys
@guards_messages
class ExplorerScreen(Screen[Result | None], Generic[Result]):
    """A screen that only opens another while it is in front, is left once, and does nothing once it is left."""

    COMPONENT_CLASSES: ClassVar[set[str]] = INK_CLASSES
    DEFAULT_CSS = """
    ExplorerScreen {
        & > .ink--plain { color: $foreground; }
        & > .ink--quiet { color: $foreground 60%; }
        & > .ink--accent { color: $accent; text-style: bold; }
        & > .ink--marked { color: $background; background: $accent; text-style: bold; }
        & > .ink--right { color: $success; }
        & > .ink--wrong { color: $error; text-style: bold; }
        &:nocolor > .ink--marked, &:ansi > .ink--marked { text-style: bold reverse; }
    }
    """
    ACTIONS: ClassVar[tuple[Action, ...]] = ()
    """Actions in the order of the line of keys; a screen that names them binds their keys."""
    HELP_TOPIC = "general"

    _result: tuple[Result | None] | None = None
    """The result that a screen is left with, where it was left."""

    _is_left = False

    def __init_subclass__(cls, **options: Any) -> None:
        if "ACTIONS" in vars(cls):
            cls.BINDINGS = bindings(cls.ACTIONS)
        super().__init_subclass__(**options)

    @property
    def settled(self) -> bool:
        """Whether nothing more is about to be shown by itself."""
        return True

    @property
    def is_there(self) -> bool:
        """Whether its widgets are: it was composed, and is not being removed."""
        return is_there(self)

    def open(self, screen: Screen[Other], done: Callable[[Other | None], object] | None = None) -> None:
        """Put a screen over this one, which has to be in front; `done` is given its result."""
        if self.is_active and not self._is_left:
            self.app.push_screen(screen, done and self.while_there(done))

    def say(self, message: str, severity: SeverityLevel = "information") -> None:
        """A message that goes away by itself."""
        say(self.app, message, severity)

    @property
    def help_page(self) -> str:
        """The page of help about the screen, with formulas and sources."""
        from tui_transformer.guide.texts import help_text

        return help_text(self.HELP_TOPIC)

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close with a result, once; where another screen is on top, as soon as that is closed."""
        if self._result is None:
            self._result = (result,)
        if self._is_left or not self.is_active:
            return AwaitComplete()
        self._is_left = True
        forget_drawn(self)
        return super().dismiss(*self._result)

    def on_screen_resume(self) -> None:
        """Close with the result that came while another screen was on top."""
        if self._result is not None:
            self.dismiss()

    def while_there(self, function: Callable[..., object]) -> Callable[..., None]:
        """A function for later, which does nothing where the widgets of this screen are gone by then."""

        def call(*arguments: Any, **named: Any) -> None:
            if self.is_there:
                function(*arguments, **named)

        return call

    def call_next(self, callback: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Call a function behind this message, as timers do; what fails is said."""
        super().call_next(partial(called, self.app, callback, *arguments, **named))

    def call_after_refresh(self, callback: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
        """Call a function once the screen is drawn, if this screen is still there: another may be drawn instead."""
        return super().call_after_refresh(self.while_there(callback), *arguments, **named)


def copy_line(screen: ExplorerScreen[Any], line: str, *without: str) -> None:
    """Copy what does the same in the shell, but for what it is `without`, and show it."""
    left_out = " and ".join(filter(None, without))
    screen.app.copy_to_clipboard(line)
    screen.say(f"copied{f', without {left_out}' if left_out else ''}: {visible(line)}")


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

    def ask(
        self, kind: str, work: Callable[[Task], Result], done: Callable[[Result], None], cost: int = AT_ONCE + 1
    ) -> None:
        """Do work now if it is known to be small, else on the worker; then use what it gave."""

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


def ask_of_now(
    port: Port, kind: str, work: Callable[[Task], Result], done: Callable[[Result], None], cost: int = AT_ONCE + 1
) -> None:
    """Ask for what follows from what is explored now; where that is another once it is there, say so instead."""
    session = port.session

    def use(result: Result) -> None:
        if port.session is session:
            done(result)
        else:
            port.say("what is explored became another meanwhile, and stays: ask for it again here")

    port.ask(kind, work, use, cost)
