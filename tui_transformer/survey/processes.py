"""A survey on several processes of this machine; one that ends early is replaced, and its batch is done again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.survey.work import ONE_THREAD, Batch, Batchwise, Spread

AHEAD = 4
"""Batches for every worker that are read before the first of them is done."""

TRIES = 3
"""So often a batch is done; a process that ends with it every time is no accident."""

SECONDS = 0.2
"""After so long without a result None is given: the caller may look whether to stop."""

Task = tuple[int, Batch]


def spread_of(workers: int | None, ray: str | None) -> Spread:
    """How batches are done: on Ray, on so many processes, in this one for None; InputError where Ray is not there."""
    if ray is None:
        return in_process if workers is None else partial(in_processes, count=workers)
    from tui_transformer.survey.on_ray import check_ray, on_ray

    check_ray()
    return partial(on_ray, address=ray, count=workers)


def in_processes(
    work: Batchwise, batches: Iterable[Batch], count: int, worker: Callable[[Batchwise], Worker] | None = None
) -> Iterator[bytes | None]:
    """The sums of each batch, in order; None now and then while the next is not there.

    So many processes are started, by default each a `Worker`; batches are read as they are needed.

    Raises:
        InputError: The model lacks what is measured, or processes end again and again at the same texts.
    """
    pool = _Pool(work, count, worker or Worker)
    try:
        yield from pool.run(iter(batches))
    finally:
        for each in pool.workers:
            each.end()


def in_process(work: Batchwise, batches: Iterable[Batch]) -> Iterator[bytes]:
    """The same in this process. Where BLAS has several threads, the last bits may differ from those of workers."""
    return map(work.sums, batches)


class Worker:
    """A process, the pipe to it, and the task that it has."""

    def __init__(self, work: Batchwise) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, work), daemon=True)
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)  # of the process that is started
        try:
            with _deaf():
                self.process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({} if value is None else {name: value})
        other.close()
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        """Hand it a batch; if the process has ended, that shows when its answer is read."""
        self.task = task
        with contextlib.suppress(OSError):
            self.pipe.send(task[1])

    def answer(self) -> tuple[str, Any] | None:
        """The reply of a process; None where it has ended."""
        try:
            reply: tuple[str, Any] = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return reply

    def end(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """What is started meanwhile hears no signal of the terminal: this process does, later if need be, and ends it."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    of_terminal = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, of_terminal)
    try:
        resource_tracker.ensure_running()  # a process, too; it lets SIGINT through again
        signal.pthread_sigmask(signal.SIG_BLOCK, of_terminal)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Pool:
    """Processes, and the tasks that wait to be done again."""

    def __init__(self, work: Batchwise, count: int, start: Callable[[Batchwise], Worker]) -> None:
        self._work, self._count, self._start = work, count, start
        self.workers: list[Worker] = []
        self._again: deque[Task] = deque()
        self._tries: Counter[int] = Counter()

    def run(self, batches: Iterator[Batch]) -> Iterator[bytes | None]:
        waiting = enumerate(batches)
        done: dict[int, bytes] = {}
        following = given = 0
        while True:
            while len(busy := [each for each in self.workers if each.task]) < self._count and (
                given - following < AHEAD * self._count
            ):
                task = self._again.popleft() if self._again else next(waiting, None)
                if task is None:
                    break
                given = max(given, task[0] + 1)
                idle = next((each for each in self.workers if each.task is None), None)
                if idle is None:
                    idle = self._start(self._work)
                    self.workers.append(idle)
                idle.give(task)
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy], SECONDS)
            if not ready:
                yield None
            for worker in busy:
                if worker.pipe in ready:
                    done |= self._taken(worker)
            while following in done:
                yield done.pop(following)
                following += 1

    def _taken(self, worker: Worker) -> dict[int, bytes]:
        """The result of a process; of one that ended, nothing, and its task is put back."""
        assert worker.task is not None  # noqa: S101 - only those that have one are waited for
        (number, batch), worker.task = worker.task, None
        answer = worker.answer()
        if answer is not None:
            kind, result = answer
            if kind == "sums":
                return {number: result}
            raise (InputError if kind == "input" else RuntimeError)(result)
        worker.end()
        self.workers.remove(worker)
        self._again.append((number, batch))
        self._tries[number] += 1
        if self._tries[number] >= TRIES:
            first, last, code = batch[0].source, batch[-1].source, worker.process.exitcode
            why = f"exit code {code}"
            if code is not None and code < 0:
                why = signal.strsignal(-code) or f"signal {-code}"
            raise InputError(
                f"{self._tries[number]} processes ended ({why}) at {first.file} lines {first.line:,} to "
                f"{last.line:,}: is memory short? Use fewer workers, or a shorter length"
            )
        return {}


# In the process


def _serve(pipe: Connection[Any, Any], work: Batchwise) -> None:
    """Do batches until the pipe is closed, as it is when the survey ends however it may."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            batch = pipe.recv()
            answer: tuple[str, Any]
            try:
                answer = "sums", work.sums(batch)
            except InputError as error:
                answer = "input", str(error)
            except Exception:  # noqa: BLE001 - the process that asked says it
                answer = "mistake", traceback.format_exc()
            pipe.send(answer)
