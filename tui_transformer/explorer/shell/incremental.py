"""Work that is done piece by piece: every piece is shown when it is there, and the screen is free in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Task

Piece = TypeVar("Piece")
Result = TypeVar("Result")


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
        take: Callable[[Result], None],
        leave_out: Callable[[Piece], bool] = lambda _: False,
    ) -> None:
        """Do nothing yet.

        Args:
            requests: Those of the screen; it says how far the work is.
            kind: What the work is asked for as.
            following: The next piece, None where nothing is missing.
            cost: Floating-point operations of a piece.
            work: Does a piece, on the worker where it costs much.
            take: Keeps and shows what a piece gave.
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
            self._requests.ask(self._kind, self._cost(piece), partial(self._work, piece), self._done)
        self._requests.show()

    def _done(self, result: Result) -> None:
        self._piece, self.idle = None, True
        self._take(result)
        self._requests.show()
        self.go_on()

    def _failed(self, _: Exception) -> None:
        """Go on without the piece, or let what is asked for next try again."""
        piece = self._piece
        self._piece, self.idle = None, True
        if piece is None or self._leave_out(piece):
            self.go_on()
