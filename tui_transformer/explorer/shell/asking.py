"""A screen that asks for work: small work is done at once, large work by the worker, and what fails is said."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from textual.notifications import SeverityLevel
from textual.screen import Screen

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.worker import Task, Worker
from tui_transformer.text.display import visible

Result = TypeVar("Result")

AT_ONCE = 2_000_000
"""Floating-point operations that are done between two key presses; more go to the worker."""

TOGETHER = 0.001
"""Seconds in which every pane has said that it has to be drawn again."""

PATIENCE = 0.15
"""Seconds after which the title says that something is being computed."""


class Asking(Screen[None]):
    """What the stage needs to compute without making anybody wait.

    Attributes:
        worker: Does what takes long.
        doing: What is being computed, to be shown; "" for nothing.
    """

    def __init__(self, worker: Worker) -> None:
        """A screen with nothing to do yet."""
        super().__init__()
        self.worker = worker
        self.doing = self._now = ""

    @property
    def here(self) -> bool:
        """Whether work may be done on the screen's own thread; a GPU belongs to the worker."""
        return True

    def show_lines(self) -> None:
        """Show `doing`."""

    def ask(self, kind: str, cost: int, work: Callable[[Task], Result], done: Callable[[Result], None]) -> None:
        """Do work now if it is small, else on the worker; then show what it gave."""
        self.worker.cancel(kind)
        if cost <= AT_ONCE and self.here:
            try:
                result = work(Task(kind, 0, lambda _: None))
            except (InputError, MemoryError) as error:
                self._failed(error)
            else:
                done(result)
            return

        def finish(result: Result) -> None:
            self.doing = ""
            done(result)

        self.worker.submit(kind, work, finish, self._failed, self._progress)
        self.set_timer(PATIENCE, self._show_progress)

    def _progress(self, what: str) -> None:
        """Called on the worker's thread."""
        self._now = what

    def _show_progress(self) -> None:
        """Say what is being computed, again and again until it is done."""
        if self.worker.busy:
            self.doing = f"computing {visible(self._now)} · esc ends"
            self.show_lines()
            self.set_timer(PATIENCE, self._show_progress)
        elif self.doing:
            self.doing = ""
            self.show_lines()

    def _failed(self, error: Exception) -> None:
        self.doing = ""
        if not isinstance(error, InputError | MemoryError):
            raise error
        self.say(str(error) or "not enough memory", severity="error")
        self.show_lines()

    def say(self, message: str, severity: SeverityLevel = "information") -> None:
        """A message that goes away by itself."""
        self.app.notify(visible(message), severity=severity, markup=False)

    def _draw_together(self) -> None:
        """Let the panes that change now be drawn at once: else the first is drawn alone, and the rest a frame later."""
        held = ExitStack()
        held.enter_context(self.app.batch_update())
        held.callback(self.check_idle)
        self.set_timer(TOGETHER, held.close)
