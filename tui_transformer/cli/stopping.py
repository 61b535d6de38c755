"""Stopping a long command in order: by a signal, or by esc where standard input is a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator
from types import FrameType

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
