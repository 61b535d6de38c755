"""One line on standard error that says how far the work is, where that is a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TypeVar

from tui_transformer.text.display import fit, visible

CLEAR = "\r\x1b[K"
Item = TypeVar("Item")


def show(text: str | None) -> None:
    """Write over the line where standard error is a terminal; None leaves it empty."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(CLEAR + ("" if text is None else fit(visible(text), width).rstrip()))
        sys.stderr.flush()


def counted(items: Iterable[Item], names: Iterable[object]) -> Iterator[Item]:
    """The items as they come; while one is waited for, its name and number stand on the line."""
    names = list(names)
    iterator = iter(items)
    try:
        for number, name in enumerate(names):
            show(f"{number + 1} of {len(names)}  {name}")
            yield next(iterator)
    finally:
        show(None)


SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
ESCAPE = b"\x1b"


@contextlib.contextmanager
def stopping() -> Iterator[list[int]]:
    """A list that a signal is put into; a second one ends the program as usual."""
    stop: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def remember(number: int, _frame: FrameType | None) -> None:
        stop.append(number)
        signal.signal(number, before[number])

    for number in SIGNALS:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, remember)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Escape:
    """Whether esc was pressed; never where standard input is no terminal, or the command is in the background."""

    def __init__(self, terminal: int | None = None) -> None:
        self._terminal = terminal

    @property
    def pressed(self) -> bool:
        """Looks at what was typed since it was asked last; a key that sends more than esc is none."""
        if self._terminal is None or not select.select([self._terminal], [], [], 0)[0]:
            return False
        return os.read(self._terminal, 1024) == ESCAPE


@contextlib.contextmanager
def escape() -> Iterator[Escape]:
    """Take keys one by one instead of lines, as long as this goes on; ctrl+c stays a signal."""
    try:
        import termios
        import tty

        terminal = sys.stdin.fileno()
        there = os.isatty(terminal) and os.tcgetpgrp(terminal) == os.getpgrp()
    except (ImportError, OSError, ValueError, AttributeError):  # Windows; or no terminal of its own
        there = False
    if not there:
        yield Escape()
        return
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield Escape(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
