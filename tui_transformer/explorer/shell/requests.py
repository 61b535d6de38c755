"""Requests of a screen: small work is done at once, large work by the worker, and some of it piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from tui_transformer.errors import InputError, reason
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.guard.failures import say
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.worker import Task, Worker
from tui_transformer.records import dataclass
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import visible

Piece = TypeVar("Piece")
Result = TypeVar("Result")

GPU_PATIENCE = 0.01
"""Seconds for which small work on a GPU is waited for: the key's repaint shows it then, and needs no second one."""

PATIENCE = 0.15
"""Seconds after which the title says that something is being computed."""


@dataclass(eq=False)
class Requests:
    """Everything that one screen has to be computed, without making anybody wait.

    Attributes:
        screen: The screen that asks.
        worker: Does what takes long.
        show: Shows `doing`.
        here: Whether work may be done on the screen's own thread; a GPU belongs to the worker.
        doing: What is being computed, to be shown; "" for nothing.
        failed: Called with what went wrong, once that was said.
    """

    screen: ExplorerScreen[Any]
    worker: Worker
    show: Callable[[], None]
    here: Callable[[], bool] = lambda: True
    doing: str = ""
    failed: Callable[[Exception], None] = lambda _: None
    _now: str = ""

    def ask(
        self, kind: str, work: Callable[[Task], Result], done: Callable[[Result], None], cost: int = AT_ONCE + 1
    ) -> None:
        """Do work now if it is known to be small, else on the worker; then show what it gave, or call `failed`."""
        self.worker.cancel(kind)
        if cost <= AT_ONCE and self.here():
            self._say_no_more()
            try:
                result = work(Task(kind, lambda _: None))
            except (InputError, MemoryError) as error:
                self._fail(error)
            else:
                done(result)
            return

        def finish(result: Result) -> None:
            said, self.doing = self.doing, ""
            done(result)
            if said:
                self.show()

        there, patience = self.screen.while_there, GPU_PATIENCE if cost <= AT_ONCE else 0.0
        self.worker.submit(kind, work, there(finish), there(self._fail), self._progress, patience)
        later(self.screen, PATIENCE, self._show_progress)

    @property
    def settled(self) -> bool:
        """Whether the screen no longer says that something is being computed that has ended."""
        return not self.doing or self.worker.busy

    @property
    def busy(self) -> bool:
        """Whether the worker does something, for this screen or another."""
        return self.worker.busy

    def cancel(self, *kinds: str) -> None:
        """End what was asked for of these kinds."""
        for kind in kinds:
            self.worker.cancel(kind)
        self._say_no_more()

    def cancel_all(self) -> bool:
        """End everything; whether there was something."""
        if not self.worker.cancel():
            return False
        self.doing = ""
        return True

    def _progress(self, what: str) -> None:
        self._now = what

    def _say_no_more(self) -> None:
        """Where nothing is computed any more, say so at once: no timer has to come by first."""
        if not self.settled:
            self.doing = ""
            self.show()

    def _show_progress(self) -> None:
        """Say what is being computed, again and again until it is done."""
        if self.worker.busy:
            self.doing = f"computing {visible(self._now)} · {hint(self.screen.app, '{back} ends')}"
            self.show()
            later(self.screen, PATIENCE, self._show_progress)
        else:
            self._say_no_more()

    def _fail(self, error: Exception) -> None:
        self.doing = ""
        if not isinstance(error, InputError | MemoryError):
            raise error
        say(self.screen.app, reason(error), "error")
        self.failed(error)
        self.show()


@dataclass(eq=False)
class Pieces(Generic[Piece, Result]):
    """One piece after the other, as long as there is a next one.

    Attributes:
        requests: Those of the screen; it says how far the work is.
        kind: What the work is asked for as.
        following: The next piece, None where nothing is missing.
        work: Does a piece, on the worker where it costs much.
        take: Keeps and shows what a piece gave, which it is told of.
        cost: Floating-point operations of a piece.
        leave_out: Is told of a piece that failed; whether to go on without it.
        idle: Whether no piece is being done or about to be.
    """

    requests: Requests
    kind: str
    following: Callable[[], Piece | None]
    work: Callable[[Piece, Task], Result]
    take: Callable[[Piece, Result], None]
    cost: Callable[[Piece], int]
    leave_out: Callable[[Piece], bool]
    idle: bool = True
    _piece: Piece | None = None
    _round: int = 0

    def __post_init__(self) -> None:
        self.requests.failed = self._failed

    def go_on(self) -> None:
        """Do the next piece behind the messages that wait, unless one is being done."""
        if self.idle:
            self.idle = False
            self.requests.screen.call_later(self._next, self._round)

    def again(self) -> None:
        """End what is being done, and begin with what is missing now."""
        self.halt()
        self.go_on()

    def halt(self) -> None:
        """End what is being done."""
        self.requests.cancel(self.kind)
        self._round += 1
        self._piece, self.idle = None, True

    def _next(self, round_: int) -> None:
        if round_ != self._round:
            return  # it was ended, and begun again behind this
        self._piece = piece = self.following() if self.requests.screen.is_there else None
        if piece is None:
            self.idle = True
        else:
            self.requests.ask(self.kind, partial(self.work, piece), partial(self._done, piece), self.cost(piece))
        self.requests.show()

    def _done(self, piece: Piece, result: Result) -> None:
        self._piece, self.idle = None, True
        self.take(piece, result)
        self.requests.show()
        self.go_on()

    def _failed(self, _: Exception) -> None:
        """Go on without the piece, or let what is asked for next try again."""
        piece = self._piece
        self._piece, self.idle = None, True
        if piece is None or self.leave_out(piece):
            self.go_on()
