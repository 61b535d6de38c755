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
    start, workers, waiting = worker or Worker, list[Worker](), enumerate(batches)
    again, tries, done = deque[Task](), Counter[int](), dict[int, bytes]()
    following = given = 0
    try:
        while True:
            while len(busy := [each for each in workers if each.task]) < count and given - following < AHEAD * count:
                task = again.popleft() if again else next(waiting, None)
                if task is None:
                    break
                given = max(given, task[0] + 1)
                idle = next((each for each in workers if each.task is None), None)
                if idle is None:
                    idle = start(work)
                    workers.append(idle)
                idle.give(task)
            if not busy:
                return
            ready = wait([each.pipe for each in busy], SECONDS)
            if not ready:
                yield None
            for each in (each for each in busy if each.pipe in ready):
                (number, batch), result = each.taken()
                if result is not None:
                    done[number] = result
                    continue
                workers.remove(each)
                again.append((number, batch))
                tries[number] += 1
                if tries[number] >= TRIES:
                    raise InputError(f"{TRIES} processes ended {each.ended(batch)}")
            while following in done:
                yield done.pop(following)
                following += 1
    finally:
        for each in workers:
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

    def taken(self) -> tuple[Task, bytes | None]:
        """Its task, and what came of it; None where the process has ended."""
        assert self.task is not None  # noqa: S101 - only those that have one are waited for
        task, self.task = self.task, None
        kind, result = self.answer() or ("ended", None)
        if kind == "ended":
            self.end()
        elif kind != "sums":
            raise (InputError if kind == "input" else RuntimeError)(result)
        return task, result

    def end(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def ended(self, batch: Batch) -> str:
        """Why, and where, in words."""
        first, last, code = batch[0].source, batch[-1].source, self.process.exitcode
        why = f"exit code {code}"
        if code is not None and code < 0:
            why = signal.strsignal(-code) or f"signal {-code}"
        return (
            f"({why}) at {first.file} lines {first.line:,} to {last.line:,}: is memory short? Use fewer workers, or a "
            "shorter length"
        )


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
