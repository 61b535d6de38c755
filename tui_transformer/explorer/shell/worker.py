"""One thread for everything that takes time, so that the screen never waits and a GPU has one owner."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from tui_transformer.records import dataclass, field
from tui_transformer.session.store import CancelledError

Result = TypeVar("Result")
Progress = Callable[[str], None]


class Job(Protocol):
    """Work that goes on without its screen, on a thread of its own."""

    @property
    def lost(self) -> str | None:
        """Message where something could not be kept; None where nothing is lost."""

    def end(self) -> None:
        """Keep what can be kept, and wait for that."""


@dataclass(eq=False)
class Background:
    """The one job of that kind, which the program ends before it ends itself."""

    job: Job | None = None


@dataclass(eq=False)
class Task:
    """One piece of work: `report` says how far it is, and raises `CancelledError` when the work should end."""

    kind: str
    on_progress: Progress
    ended: threading.Event = field(default_factory=threading.Event)

    def report(self, what: str) -> None:
        """Tell what is being done; the place where work can be ended."""
        if self.ended.is_set():
            raise CancelledError
        self.on_progress(what)


@dataclass(eq=False)
class Worker:
    """Runs work in order on one thread; a new task of a kind ends the older ones of that kind and drops their results.

    Attributes:
        post: Runs a function on the screen's thread.
    """

    post: Callable[..., Any]
    _tasks: dict[str, Task] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "engine"))

    def submit(
        self,
        kind: str,
        work: Callable[[Task], Result],
        done: Callable[[Result], None],
        failed: Callable[[Exception], None],
        progress: Progress = lambda _: None,
        patience: float = 0.0,
    ) -> None:
        """Run `work` on the thread, then `done` or `failed` on the screen's, unless a newer task of the kind came.

        Where the thread has nothing else to do, it is waited for so many seconds: what comes so soon is drawn at once.
        """
        self.cancel(kind)
        patience = 0.0 if self._tasks else patience
        task = Task(kind, progress)
        self._tasks[kind] = task

        def finish(future: Future[Result]) -> None:
            if self._tasks.get(kind) is not task:
                return
            del self._tasks[kind]
            error = future.exception()
            if error is None:
                done(future.result())
            elif isinstance(error, Exception):
                failed(error)
            else:
                raise error

        def deliver(future: Future[Result]) -> None:
            if not future.cancelled() and not task.ended.is_set():
                self.post(finish, future)

        future = self._thread.submit(work, task)
        future.add_done_callback(deliver)
        if patience and wait([future], patience).done:
            finish(future)

    def between(self, work: Callable[[], Result]) -> Future[Result]:
        """Run work on the thread between tasks, for another thread that waits for it; it is not cancelled."""
        return self._thread.submit(work)

    def cancel(self, kind: str | None = None) -> bool:
        """End the task of a kind, or all; whether there was one."""
        kinds = [kind] if kind is not None else list(self._tasks)
        cancelled = [self._tasks.pop(name) for name in kinds if name in self._tasks]
        for task in cancelled:
            task.ended.set()
        return bool(cancelled)

    @property
    def busy(self) -> bool:
        """Whether work is waiting or running."""
        return bool(self._tasks)

    def stop(self) -> None:
        """End everything; work that is running stops at its next report."""
        self.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)
