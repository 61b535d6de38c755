"""Work that is done piece by piece: every piece is shown when it is there, and the screen is free in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from tui_transformer.explorer.shell.overview import Overview
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
        screen: Overview,
        following: Callable[[], Piece | None],
        cost: Callable[[Piece], int],
        work: Callable[[Piece, Task], Result],
        take: Callable[[Result], None],
    ) -> None:
        """Do nothing yet.

        Args:
            screen: Asks for the work under its `KIND`, and says how far it is.
            following: The next piece, None where nothing is missing.
            cost: Floating-point operations of a piece.
            work: Does a piece, on the worker where it costs much.
            take: Keeps and shows what a piece gave.
        """
        self.idle = True
        self._screen, self._following, self._cost, self._work, self._take = screen, following, cost, work, take
        screen.requests.failed = self._failed

    def go_on(self) -> None:
        """Do the next piece behind the messages that wait, unless one is being done."""
        if self.idle:
            self.idle = False
            self._screen.call_later(self._next)

    def again(self) -> None:
        """End what is being done, and begin with what is missing now."""
        self._screen.worker.cancel(self._screen.KIND)
        self.idle = True
        self.go_on()

    def _next(self) -> None:
        screen = self._screen
        piece = self._following() if screen.is_there else None
        if piece is None:
            self.idle = True
        else:
            screen.ask(screen.KIND, self._cost(piece), partial(self._work, piece), self._done)
        screen.show_lines()

    def _done(self, result: Result) -> None:
        self.idle = True
        self._take(result)
        self._screen.show_lines()
        self.go_on()

    def _failed(self, _: Exception) -> None:
        """Let what is asked for next try again."""
        self.idle = True
