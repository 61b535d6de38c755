"""Beside the screen: timers that call, messages that go away, threads, work on the one thread, and garbage."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
from driving import NARROW, exploring
from textual import events
from textual._styles_cache import StylesCache
from textual.app import App
from textual.timer import Timer
from textual.widgets import Static
from textual.widgets._toast import Toast

from tui_transformer.explorer.guard.event_queue import RARE, Collecting, InTurn, later
from tui_transformer.explorer.guard.failures import Notice
from tui_transformer.explorer.shell.worker import Task, Worker


class Circle:
    """An object that nothing but a collection ends."""

    def __init__(self) -> None:
        self.itself = self


class Small(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.in_turn = InTurn(self, super().on_event)
        self.collecting = Collecting(self, self.in_turn, 0.01)

    def on_mount(self) -> None:
        self.collecting.begin()

    def on_unmount(self) -> None:
        self.collecting.end()


def old() -> weakref.ref[Circle]:
    """A circle that only a look through all objects finds."""
    circle = Circle()
    gc.collect(1)
    gc.collect(1)
    return weakref.ref(circle)


async def test_what_is_left_over_goes_while_keys_rest_and_while_they_come_again_and_again() -> None:
    usual = gc.get_threshold()
    async with (app := Small()).run_test() as pilot:
        assert gc.get_threshold() == RARE
        left = old()
        while left() is not None:
            await pilot.pause(0.01)
        # while keys come
        left = old()
        app.collecting.due = True
        while left() is not None:
            await app.in_turn.take(events.Key("a", "a"))
            await pilot.pause(0.001)
        # the lines of widgets that are gone go with them
        await app.mount(words := Static("words"))
        words.styles.padding = 1  # such lines are Textual's own
        await pilot.pause()
        kept = StylesCache.get_inner_outer.cache_info
        assert kept().currsize
        app.collecting.due = True
        end = time.monotonic() + 20
        while kept().currsize:
            assert time.monotonic() < end
            await pilot.pause(0.01)
    assert gc.get_threshold() == usual, "collecting is as before in the end"


async def test_leaving_a_screen_says_that_there_is_something_to_collect() -> None:
    async with exploring() as explorer:
        await explorer.press("?")
        explorer.app.collecting.due = False
        await explorer.keys("escape")
        assert explorer.app.collecting.due


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


async def test_a_message_whose_time_is_over_before_it_is_shown_goes_away_and_holds_up_no_key(monkeypatch):
    intervals = []
    begin = Timer.__init__

    def recorded(timer: Timer, target: object, interval: float, **options: object) -> None:
        intervals.append(interval)
        begin(timer, target, max(interval, 0.01), **options)

    monkeypatch.setattr(Timer, "__init__", recorded)
    async with exploring(NARROW) as explorer:
        monkeypatch.setattr(Notice, "has_expired", False)  # its time ends between this question and the timer
        explorer.app.notify("late", timeout=-1)
        await explorer.until(lambda: bool(explorer.main.query(Toast)))
        await explorer.until(lambda: not explorer.main.query(Toast))
        await explorer.press("space")
    assert min(intervals) > 0


def test_a_message_is_over_when_its_time_is():
    over = Notice("over", timeout=1)
    over.raised_at -= 2
    assert over.has_expired
    assert over.time_left > 0
    assert not Notice("shown", timeout=60).has_expired


async def test_what_a_thread_asks_of_the_screen_is_answered_and_it_ends_with_that() -> None:
    answers: list[object] = []
    async with exploring() as explorer:

        def ask() -> None:
            answers.append(explorer.app.call_from_thread(lambda: explorer.app.screen is explorer.main))
            with pytest.raises(ZeroDivisionError):
                explorer.app.call_from_thread(lambda: 1 // 0)

        thread = threading.Thread(target=ask)
        thread.start()
        await explorer.until(lambda: not thread.is_alive())
    assert answers == [True]
    # one that asks as the app ends does not wait for good
    thread = threading.Thread(target=explorer.app.call_from_thread, args=(lambda: None,), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


async def test_a_call_whose_moment_is_gone_before_it_is_waited_for_still_comes(monkeypatch):
    called: list[str] = []
    async with exploring() as explorer:
        looks = count()
        monkeypatch.setattr("textual.timer._time.get_time", lambda: 0.002 * next(looks))  # it takes long to look
        later(explorer.main, 0.001, partial(called.append, "screen"))
        explorer.app.set_timer(0.001, partial(called.append, "app"))
        await explorer.until(lambda: len(called) == 2)
        monkeypatch.undo()
