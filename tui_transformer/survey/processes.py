"""A survey on several processes of this machine; one that ends early is replaced, and its batch is done again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.survey.work import ONE_THREAD, Batch, Work, new

AHEAD = 4
"""Batches for every worker that are read before the first of them is done."""

TRIES = 3
"""So often a batch is done; a process that ends with it every time is no accident."""

SECONDS = 0.2
"""After so long without a result None is given: the caller may look whether to stop."""

Task = tuple[int, Batch]


def in_processes(
    work: Work, batches: Iterable[Batch], count: int, worker: Callable[[Work], Worker] | None = None
) -> Iterator[bytes | None]:
    """The sums of each batch, in order; None now and then while the next is not there.

    Args:
        work: What is done with a batch.
        batches: Read as they are needed.
        count: How many processes.
        worker: Starts one; by default a `Worker` of this module.

    Raises:
        InputError: The model lacks what is measured, or processes end again and again at the same texts.
    """
    pool = _Pool(new(work), count, worker or Worker)
    try:
        yield from pool.run(iter(batches))
    finally:
        pool.end()


class Worker:
    """A process, the pipe to it, and the task that it has."""

    def __init__(self, work: Work) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, work), daemon=True)
        with _environment(ONE_THREAD):
            self.process.start()
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


class _Pool:
    """Processes, and the tasks that wait to be done again."""

    def __init__(self, work: Work, count: int, start: Callable[[Work], Worker]) -> None:
        self._work, self._count, self._start = work, count, start
        self._workers: list[Worker] = []
        self._again: deque[Task] = deque()
        self._tries: Counter[int] = Counter()

    def run(self, batches: Iterator[Batch]) -> Iterator[bytes | None]:
        waiting = enumerate(batches)
        done: dict[int, bytes] = {}
        following = given = 0
        while True:
            while len(busy := self._busy()) < self._count and given - following < AHEAD * self._count:
                task = self._again.popleft() if self._again else next(waiting, None)
                if task is None:
                    break
                given = max(given, task[0] + 1)
                self._idle().give(task)
            if not busy:
                return
            if not (ready := wait(list(busy), SECONDS)):
                yield None
            for pipe in ready:
                done |= self._taken(busy[pipe])
            while following in done:
                yield done.pop(following)
                following += 1

    def end(self) -> None:
        for worker in self._workers:
            worker.end()

    def _busy(self) -> dict[Any, Worker]:
        return {worker.pipe: worker for worker in self._workers if worker.task is not None}

    def _idle(self) -> Worker:
        """A process that has nothing to do; a new one where there is none."""
        idle = next((worker for worker in self._workers if worker.task is None), None)
        if idle is None:
            idle = self._start(self._work)
            self._workers.append(idle)
        return idle

    def _taken(self, worker: Worker) -> dict[int, bytes]:
        """The result of a process; of one that ended, nothing, and its task is put back."""
        assert worker.task is not None  # noqa: S101 - only those that have one are waited for
        (number, batch), worker.task = worker.task, None
        answer = worker.answer()
        if answer is None:
            worker.end()
            self._workers.remove(worker)
            self._put_back((number, batch), worker.process.exitcode)
            return {}
        kind, result = answer
        if kind == "sums":
            return {number: result}
        raise (InputError if kind == "input" else RuntimeError)(result)

    def _put_back(self, task: Task, code: int | None) -> None:
        number, batch = task
        self._tries[number] += 1
        if self._tries[number] >= TRIES:
            first, last = batch[0].source, batch[-1].source
            raise InputError(
                f"{self._tries[number]} processes ended ({_said(code)}) at {first.file} lines {first.line:,} to "
                f"{last.line:,}: is memory short? Use fewer workers, or a shorter --length"
            )
        self._again.append(task)


def _said(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    return signal.strsignal(-code) or f"signal {-code}"


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """The environment with these values, for processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# In the process


def _serve(pipe: Connection[Any, Any], work: Work) -> None:
    """Do batches until the pipe is closed, as it is when the survey ends however it may."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            pipe.send(_answer(work, pipe.recv()))


def _answer(work: Work, batch: Batch) -> tuple[str, Any]:
    try:
        return "sums", work.sums(batch)
    except InputError as error:
        return "input", str(error)
    except Exception:  # noqa: BLE001 - the process that asked says it
        return "mistake", traceback.format_exc()
