"""A program in a terminal of its own, seen from outside: what it writes, and when."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from types import TracebackType

ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=$]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>P\\])")
LONGEST = 60.0
"""Seconds after which a program that says nothing counts as hanging."""


class Terminal:
    """A terminal of a given size in which a program runs.

    Attributes:
        written: Bytes that the program has written.
    """

    def __init__(self, command: Sequence[str], columns: int, lines: int) -> None:
        """Start the program."""
        self.written = 0
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        dropped = ("NO_COLOR", "COLUMNS", "LINES")
        environment = {key: value for key, value in os.environ.items() if key not in dropped}
        environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.send_signal(signal.SIGTERM)
        while self._read(0.5):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._master)

    def press(self, keys: bytes) -> float:
        """Write keys; gives the moment."""
        os.write(self._master, keys)
        return time.perf_counter()

    def until(self, text: bytes) -> float:
        """Seconds from the start until the program has written a text."""
        seen = b""
        while text not in ESCAPES.sub(b"", seen):
            part = self._read(LONGEST)
            if not part:
                raise TimeoutError(f"never written: {text!r}; seen: {ESCAPES.sub(b'', seen)[-400:]!r}")
            seen += part
        return time.perf_counter() - self.started

    def repaint(self, keys: bytes, quiet: float) -> float:
        """Seconds from keys to the end of the output that they cause; a quiet time follows it."""
        return self._last_after(self.press(keys), quiet)

    def hold(self, keys: Sequence[bytes], every: float, quiet: float) -> float:
        """Seconds from the last of keys that come one after another, as of a held key, to the end of the output."""
        begun = pressed = time.perf_counter()
        for at, key in enumerate(keys):
            while (left := begun + at * every - time.perf_counter()) > 0:
                self._read(left)
            pressed = self.press(key)
        return self._last_after(pressed, quiet)

    def _last_after(self, pressed: float, quiet: float) -> float:
        last, wait = pressed, LONGEST
        while self._read(wait):
            last, wait = time.perf_counter(), quiet
        if last == pressed:
            raise TimeoutError("nothing is written after a key")
        return last - pressed

    def drain(self, quiet: float) -> None:
        """Wait until nothing has come for a while."""
        while self._read(quiet):
            pass

    def _read(self, wait: float) -> bytes:
        """The output as soon as there is some; nothing where the time is over or the program has ended."""
        ready, _, _ = select.select([self._master], [], [], wait)
        if not ready:
            return b""
        try:
            part = os.read(self._master, 1 << 20)
        except OSError:
            return b""
        self.written += len(part)
        return part
