"""Work on the one thread: what comes soon is shown at once, what takes long when it is there, and nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tui_transformer.explorer.shell.worker import Task, Worker


class Posted:
    """What is to be run on the screen's thread, run when a test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.came = threading.Event()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.calls.append((function, arguments))
        self.came.set()

    def run(self) -> None:
        """Run all of it, once it is there."""
        assert self.came.wait(10)
        for function, arguments in self.calls:
            function(*arguments)


@pytest.fixture
def posted() -> Posted:
    return Posted()


@pytest.fixture
def worker(posted: Posted) -> Iterator[Worker]:
    worker = Worker(posted)
    yield worker
    worker.stop()


def test_what_comes_within_the_patience_is_done_before_the_call_returns_and_once(worker, posted: Posted) -> None:
    done, failed = list[int](), list[str]()
    worker.submit("cell", lambda _: 7, done.append, pytest.fail, patience=10.0)
    assert done == [7]
    posted.run()
    assert done == [7], "what was posted meanwhile does nothing"
    assert not worker.busy
    worker.submit("cell", lambda _: 1 // 0, pytest.fail, lambda error: failed.append(str(error)), patience=10.0)
    assert failed == ["integer division or modulo by zero"]


def test_what_takes_longer_comes_later(worker: Worker, posted: Posted) -> None:
    done, goes_on = list[int](), threading.Event()

    def work(_: Task) -> int:
        return 7 if goes_on.wait(10) else 0

    worker.submit("cell", work, done.append, pytest.fail, patience=0.001)
    assert done == []
    goes_on.set()
    posted.run()
    assert done == [7]


def test_nobody_waits_behind_other_work(worker: Worker) -> None:
    done, goes_on = list[int](), threading.Event()
    worker.submit("attention", lambda _: goes_on.wait(10), lambda _: None, pytest.fail)
    worker.submit("cell", lambda _: 7, done.append, pytest.fail, patience=60.0)
    assert done == []
    goes_on.set()
