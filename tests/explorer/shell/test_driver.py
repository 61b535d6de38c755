"""Input of a terminal: anything may come, and what means nothing is nothing."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Iterator

import pytest

if sys.platform == "win32":
    pytest.skip("this driver is for other systems", allow_module_level=True)

from textual import events
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tui_transformer.explorer.guard import line
from tui_transformer.explorer.guard.driver import (
    AT_ONCE,
    MOST_WAITING,
    SOON,
    Parser,
    TerminalDriver,
    _can_be,
    driver_for,
)
from tui_transformer.explorer.guard.line import LOST, SLOW

STRANGE = (
    "\x1b[9999999999u",
    "\x1b[97:65;2u",
    "\x1b[1114112;1;1114112u",
    "\x1b[48;0;0;0;0t\x1b[<0;5;5M",
    "\x1b[48;24;80;0;0t\x1b[<0;5;5M",
    "\x1b[<99999999999999999999999999;1;1M",
    "\x1b[M\x01\x01\x01",
    "\x1b[1000000000000T",
    "\x1b[;;;u",
)
NUMBERS = (0, 1, 48, 97, 255, 70_000, 10**12, "5:6")


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Leave no driver behind that answers when the tests are stopped and go on."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_no_strange_sequence_stops_the_keys_behind_it():
    for sequence in STRANGE:
        last = list(Parser().feed(f"{sequence}\x1b[A"))[-1]
        assert isinstance(last, events.Key), sequence
        assert last.key == "up", sequence
    # at random
    chance = random.Random(1)  # noqa: S311
    parser = Parser()
    for _ in range(3_000):
        numbers = ";".join(str(chance.choice(NUMBERS)) for _ in range(chance.randint(0, 5)))
        list(parser.feed(f"\x1b[{chance.choice(('', '?', '<'))}{numbers}{chance.choice('ABHRu~tcmMZ$')}"))
    list(parser.feed("\x1b[201~"))
    assert [message.key for message in parser.feed("xy") if isinstance(message, events.Key)] == ["x", "y"]


def test_an_escape_that_comes_together_with_a_key_is_not_lost():
    """As tmux sends them, half a second apart, and whoever types ahead."""
    typed = {"t": "t", "T": "T", "?": "question_mark", "]": "right_square_bracket", "0": "0", "\r": "enter"}
    for sent, key in typed.items():
        keys = [message.key for message in Parser().feed(f"\x1b{sent}x") if isinstance(message, events.Key)]
        assert keys == ["escape", key, "x"], sent
    parser = Parser()
    assert not list(parser.feed("\x1b[")), "a sequence may follow"
    parser._timeout_time = 0.0
    keys = [message.key for message in parser.tick() if isinstance(message, events.Key)]
    assert keys == ["escape", "left_square_bracket"]
    # a sequence that is one key has none
    one = {"\x1b[A": "up", "\x1bOP": "f1", "\x1bf": "ctrl+right", "\x1bb": "ctrl+left", "\x1b\x7f": "ctrl+w"}
    for sent, key in one.items():
        assert [message.key for message in Parser().feed(sent) if isinstance(message, events.Key)] == [key], sent


def test_no_letter_of_what_is_pasted_is_a_key():
    data = "x\x1b[200~a\x1bqb\x1b[31mc\x1b[20\x1b[200~\x1b\x1b[201~\x1b[A\x1b[200~d\x1b[201~y"
    for at in range(len(data)):
        for end in range(at, len(data)):
            parser, said = Parser(), list[str]()
            for part in filter(None, (data[:at], data[at:end], data[end:])):
                said += [each.text if isinstance(each, events.Paste) else each.key for each in parser.feed(part)]
            assert said == ["x", "a␛qb␛[31mc␛[20␛[200~␛", "up", "d", "y"], (at, end)


def test_sizes_that_no_terminal_has_are_not_taken():
    sizes = {(0, 0): False, (0, 24): False, (1, 1): True, (300, 100): True, (10**9, 5): False}
    assert {size: _can_be(events.Resize.from_dimensions(size, None)) for size in sizes} == sizes


def test_the_driver_takes_the_place_of_textuals_own_alone():
    class Other(LinuxDriver):
        pass

    assert driver_for(LinuxDriver) is TerminalDriver
    assert driver_for(Other) is Other


async def test_the_answer_of_the_terminal_says_how_quick_the_line_is(monkeypatch: pytest.MonkeyPatch):
    app, now, written = Slow(), [100.0], list[str]()
    monkeypatch.setattr(line.time, "monotonic", lambda: now[0])
    driver = TerminalDriver(app)
    driver.write = written.append
    assert not driver.is_quick
    driver.measure()
    driver.measure()
    assert written == ["\x1b[6n"], "one question at a time"
    now[0] += 0.02
    driver._hand_on(Parser().feed("\x1b[12;40R"))
    assert driver.took == pytest.approx(0.02)
    assert driver.is_quick
    assert not app.taken, "nobody else hears of it"
    driver.measure()
    now[0] += 2 * SLOW
    assert not driver.is_quick, "the answer is overdue"
    driver.measure()
    assert len(written) == 2
    now[0] += LOST
    driver.measure()
    assert len(written) == 3, "that answer will not come"
    now[0] += 2 * SLOW
    driver._hand_on(Parser().feed("\x1b[1;1R"))
    assert not driver.is_quick
    driver._hand_on(Parser().feed("\x1b[1;1R"))
    assert driver.took == pytest.approx(2 * SLOW), "nobody asked"


class Slow(App[None]):
    """An app that takes events, and handles none before it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Message] = []
        self.handles = False

    @property
    def waiting(self) -> int:
        return 0 if self.handles else len(self.taken)

    def post_message(self, message: Message) -> bool:
        self.taken.append(message)
        return True


async def test_no_more_is_read_than_can_be_handled_and_nothing_is_lost():
    app, (reads, writes) = Slow(), os.pipe()
    driver = TerminalDriver(app)
    driver.fileno = reads
    typed = 4 * AT_ONCE
    os.write(writes, b"x" * typed)
    reading = asyncio.get_running_loop().run_in_executor(None, driver.run_input_thread)
    try:
        async with asyncio.timeout(20):
            while app.waiting <= MOST_WAITING:
                await asyncio.sleep(0.001)
            await asyncio.sleep(10 * SOON)
            assert len(app.taken) < typed
            app.handles = True
            while len(app.taken) < typed:
                await asyncio.sleep(0.001)
    finally:
        os.close(writes)
        await reading
        os.close(reads)
    assert {message.key for message in app.taken if isinstance(message, events.Key)} == {"x"}


async def test_reading_waits_as_long_as_very_many_events_do():
    app = Slow()
    driver = TerminalDriver(app)
    app.taken = [events.Key("x", "x")] * (MOST_WAITING + 1)
    assert driver._too_many
    app.taken.pop()
    assert not driver._too_many
