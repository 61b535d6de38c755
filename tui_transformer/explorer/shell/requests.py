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
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import visible

Piece = TypeVar("Piece")
Result = TypeVar("Result")

GPU_PATIENCE = 0.01
"""Seconds for which small work on a GPU is waited for: the key's repaint shows it then, and needs no second one."""

PATIENCE = 0.15
"""Seconds after which the title says that something is being computed."""


class Requests:
    """Everything that one screen has to be computed, without making anybody wait.

    Attributes:
        screen: The screen that asks.
        show: Shows `doing`.
        doing: What is being computed, to be shown; "" for nothing.
        failed: Called with what went wrong, once that was said.
    """

    def __init__(
        self,
        screen: ExplorerScreen[Any],
        worker: Worker,
        show: Callable[[], None],
        here: Callable[[], bool] = lambda: True,
    ) -> None:
        """Nothing is asked for yet.

        Args:
            screen: The screen that asks.
            worker: Does what takes long.
            show: Shows `doing`.
            here: Whether work may be done on the screen's own thread; a GPU belongs to the worker.
        """
        self.doing = self._now = ""
        self.failed: Callable[[Exception], None] = lambda _: None
        self.screen, self.show = screen, show
        self._worker, self._here = worker, here

    def ask(
        self, kind: str, work: Callable[[Task], Result], done: Callable[[Result], None], cost: int = AT_ONCE + 1
    ) -> None:
        """Do work now if it is known to be small, else on the worker; then show what it gave, or call `failed`."""
        self._worker.cancel(kind)
        if cost <= AT_ONCE and self._here():
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
        self._worker.submit(kind, work, there(finish), there(self._fail), self._progress, patience)
        later(self.screen, PATIENCE, self._show_progress)

    @property
    def settled(self) -> bool:
        """Whether the screen no longer says that something is being computed that has ended."""
        return not self.doing or self._worker.busy

    @property
    def busy(self) -> bool:
        """Whether the worker does something, for this screen or another."""
        return self._worker.busy

    def cancel(self, *kinds: str) -> None:
        """End what was asked for of these kinds."""
        for kind in kinds:
            self._worker.cancel(kind)
        self._say_no_more()

    def cancel_all(self) -> bool:
        """End everything; whether there was something."""
        if not self._worker.cancel():
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
        if self._worker.busy:
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


class Pieces(Generic[Piece, Result]):
    """One piece after the other, as long as there is a next one.

    Attributes:
        idle: Whether no piece is being done or about to be.
    """

    def __init__(
        self,
        requests: Requests,
        kind: str,
        following: Callable[[], Piece | None],
        cost: Callable[[Piece], int],
        work: Callable[[Piece, Task], Result],
        take: Callable[[Piece, Result], None],
        leave_out: Callable[[Piece], bool],
    ) -> None:
        """Do nothing yet.

        Args:
            requests: Those of the screen; it says how far the work is.
            kind: What the work is asked for as.
            following: The next piece, None where nothing is missing.
            cost: Floating-point operations of a piece.
            work: Does a piece, on the worker where it costs much.
            take: Keeps and shows what a piece gave, which it is told of.
            leave_out: Is told of a piece that failed; whether to go on without it.
        """
        self.idle = True
        self._requests, self._kind = requests, kind
        self._following, self._cost, self._work = following, cost, work
        self._take, self._leave_out = take, leave_out
        self._piece: Piece | None = None
        self._round = 0
        requests.failed = self._failed

    def go_on(self) -> None:
        """Do the next piece behind the messages that wait, unless one is being done."""
        if self.idle:
            self.idle = False
            self._requests.screen.call_later(self._next, self._round)

    def again(self) -> None:
        """End what is being done, and begin with what is missing now."""
        self.halt()
        self.go_on()

    def halt(self) -> None:
        """End what is being done."""
        self._requests.cancel(self._kind)
        self._round += 1
        self._piece, self.idle = None, True

    def _next(self, round_: int) -> None:
        if round_ != self._round:
            return  # it was ended, and begun again behind this
        self._piece = piece = self._following() if self._requests.screen.is_there else None
        if piece is None:
            self.idle = True
        else:
            self._requests.ask(self._kind, partial(self._work, piece), partial(self._done, piece), self._cost(piece))
        self._requests.show()

    def _done(self, piece: Piece, result: Result) -> None:
        self._piece, self.idle = None, True
        self._take(piece, result)
        self._requests.show()
        self.go_on()

    def _failed(self, _: Exception) -> None:
        """Go on without the piece, or let what is asked for next try again."""
        piece = self._piece
        self._piece, self.idle = None, True
        if piece is None or self._leave_out(piece):
            self.go_on()
