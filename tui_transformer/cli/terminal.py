"""The terminal: whether the explorer can be shown on it, how far work is, what stops it; and threads of products."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FrameType
from typing import TypeVar

from tui_transformer.errors import UsageError
from tui_transformer.machine import ENDING, THREADS
from tui_transformer.text.display import fit, visible


def check_terminal() -> None:
    """Raise UsageError where the explorer cannot draw; in a browser it does not draw on a terminal."""
    if "web_driver" in os.environ.get("TEXTUAL_DRIVER", ""):
        return
    if os.environ.get("TERM") == "dumb":
        raise UsageError("the explorer cannot draw on TERM=dumb: use `tui-transformer show` instead")
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        # Textual draws on standard error: sent to a file, the screen would stay empty.
        raise UsageError(
            "the explorer needs a terminal for input, output and errors: use `tui-transformer show` instead"
        )


def choose_threads() -> None:
    """One thread where other work has all cores, unless a number was chosen or NumPy is there already."""
    if "numpy" in sys.modules or any(os.environ.get(name) for name in THREADS):
        return
    with contextlib.suppress(AttributeError, OSError):  # on Windows, which does not say how many processes wait
        if os.getloadavg()[0] >= (os.cpu_count() or 1):
            os.environ[THREADS[0]] = "1"


# Progress


CLEAR = "\r\x1b[K"
OFTEN, SELDOM = 0.1, 10.0
"""Seconds between two lines that say how far work is: on a terminal, and elsewhere."""

Item = TypeVar("Item")


def show(text: str | None) -> None:
    """Write over the line where standard error is a terminal; None leaves it empty."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(CLEAR + ("" if text is None else fit(visible(text), width).rstrip()))
        sys.stderr.flush()


class Line:
    """How far work is: one line that is rewritten on a terminal; elsewhere a note now and then, or none."""

    def __init__(self, *, notes: bool = True) -> None:
        self._notes, self._told, self._open = notes, 0.0, False

    def tell(self, text: str, *, now: bool = False) -> None:
        """Say it, unless something was said just before; `now` at once, as what comes between."""
        at, rewrites = time.monotonic(), sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        if not now and at - self._told <= (OFTEN if rewrites else SELDOM):
            return
        self._told = self._told if now else at
        if rewrites:
            show(text)
            self._open = True
        elif self._notes:
            from tui_transformer.cli.output import note

            note(text)

    def close(self) -> None:
        """Leave the line: what is said next stands below it."""
        if self._open:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._open = False


@contextlib.contextmanager
def cleared() -> Iterator[None]:
    """Leave the line empty at the end, whatever it is."""
    try:
        yield
    finally:
        show(None)


def counted(items: Iterable[Item], names: Iterable[object]) -> Iterator[Item]:
    """The items as they come; while one is waited for, its name and number stand on the line."""
    names = list(names)
    iterator = iter(items)
    with cleared():
        for number, name in enumerate(names):
            show(f"{number + 1} of {len(names)}  {name}")
            yield next(iterator)


ESCAPE = b"\x1b"
INTERRUPTED = 130
"""The exit code after ctrl+c, and after esc."""


@contextlib.contextmanager
def stopping() -> Iterator[list[int]]:
    """A list that a signal is put into; a second one ends the program as usual."""
    stop: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}

    def remember(number: int, _frame: FrameType | None) -> None:
        stop.append(number)
        signal.signal(number, before[number])

    for number in before:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, remember)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def escape_pressed(terminal: int) -> bool:
    """Looks at what was typed since it was asked last; a key that sends more than esc is none."""
    if not _is_in_front(terminal):
        return False
    _take_keys(terminal)  # a shell that had the terminal meanwhile took lines
    return bool(select.select([terminal], [], [], 0)[0]) and os.read(terminal, 1024) == ESCAPE


def _take_keys(terminal: int) -> None:
    """Take keys one by one instead of lines."""
    import termios
    import tty

    if termios.tcgetattr(terminal)[3] & termios.ICANON:
        tty.setcbreak(terminal, termios.TCSADRAIN)


def _is_in_front(terminal: int) -> bool:
    """Whether the keys are for this command: to the shell that put it into the background they are its own."""
    return os.isatty(terminal) and os.tcgetpgrp(terminal) == os.getpgrp()


@contextlib.contextmanager
def escape(*, taken: bool) -> Iterator[Callable[[], bool]]:
    """Whether esc was pressed; never where standard input is no terminal or `taken`, or this is in the background.

    Keys are taken one by one instead of lines, as long as this goes on; ctrl+c stays a signal.
    """
    try:
        import termios

        terminal = sys.stdin.fileno()
        there = not taken and _is_in_front(terminal)
    except (ImportError, OSError, ValueError, AttributeError):  # Windows; or no terminal of its own
        there = False
    if not there:
        yield lambda: False
        return
    before = termios.tcgetattr(terminal)
    try:
        _take_keys(terminal)
        yield partial(escape_pressed, terminal)
    finally:
        if _is_in_front(terminal):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
