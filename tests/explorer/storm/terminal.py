"""A terminal that only remembers: the modes that were set, the end of what was written, and how the program ended."""

from __future__ import annotations

import contextlib
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
from collections.abc import Mapping, Sequence
from pathlib import Path

ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=$]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>P\\])|\x08")
"""Sequences that are no text, and steps back over a column."""

MODE = re.compile(rb"\x1b\[(?:\?(\d+(?:;\d+)*)([hl])|([<>])\d*u)")
"""A mode that is set or reset, or a keyboard protocol."""

IN_BAND = 2048
"""The mode in which a terminal says its size in what it sends."""

KEPT = 400_000
"""Bytes of what was written that are remembered."""


class Terminal:
    """A pseudo-terminal, the program in it, and what a terminal would know of it."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], size: tuple[int, int]
    ) -> None:
        self._master, self._slave = pty.openpty()
        self.modes: dict[int, bool] = {}
        self.resize(*size)
        self.before = self.settings()
        self.keyboards = 0
        self.written, self.total = bytearray(), 0
        self._tail = b""
        self.process = subprocess.Popen(
            command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.set_blocking(self._master, False)

    def settings(self) -> list[object]:
        """Output of `stty -a`."""
        return termios.tcgetattr(self._slave)

    def resize(self, columns: int, lines: int) -> None:
        """Another size; the program gets the signal."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if self.modes.get(IN_BAND):
            self.send(f"\x1b[48;{lines};{columns};{lines * 20};{columns * 10}t".encode(), 5.0)

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self.process.poll() is not None

    def send(self, data: bytes, patience: float) -> bool:
        """Write all of it; False where the program does not read, or has ended."""
        end = time.monotonic() + patience
        while data:
            self.read(0)
            with contextlib.suppress(BlockingIOError, OSError):
                data = data[os.write(self._master, data) :]
                continue
            if self.ended or time.monotonic() > end:
                return False
            self.go_on()
            self.read(0.01)
        return True

    def go_on(self) -> None:
        """Wake a program that has stopped itself, as its palette offers, which is what `fg` does in a shell."""
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
            if status.split()[0] == "T":
                os.kill(self.process.pid, signal.SIGCONT)

    def read(self, wait: float) -> bytes:
        """Output within so many seconds, as soon as there is some."""
        if not select.select([self._master], [], [], wait)[0]:
            return b""
        try:
            part = os.read(self._master, 1 << 20)
        except OSError:
            return b""
        self._remember(part)
        return part

    def drain(self, quiet: float, longest: float) -> bytes:
        """Everything that is written until nothing came for a while."""
        end, seen = time.monotonic() + longest, b""
        while time.monotonic() < end:
            part = self.read(quiet)
            if not part:
                break
            seen += part
        return seen

    @property
    def unread(self) -> int:
        """Bytes that were sent and that the program has not read."""
        return struct.unpack("i", fcntl.ioctl(self._slave, termios.FIONREAD, bytes(4)))[0]

    def since(self, total: int) -> bytes:
        """Output since there were so many bytes, as far as it is remembered."""
        return bytes(self.written[-(self.total - total) :]) if self.total > total else b""

    def _remember(self, part: bytes) -> None:
        self.total += len(part)
        self.written += part
        if len(self.written) > 2 * KEPT:
            del self.written[:-KEPT]
        text, end = self._tail + part, 0
        for match in MODE.finditer(text):
            end = match.end()
            if match[3]:
                self.keyboards += 1 if match[3] == b">" else -1
                continue
            for number in match[1].split(b";"):
                self.modes[int(number)] = match[2] == b"h"
        self._tail = text[max(end, len(text) - 16) :]

    def close(self) -> int | None:
        """End the program where it still runs; its exit code."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._slave)
        os.close(self._master)
        return self.process.returncode


def _own_terminal() -> None:
    """Make the terminal that of the new session, so that a resize is told."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def plain(written: bytes | bytearray) -> str:
    """Text with a blank for every sequence between its parts."""
    return ESCAPES.sub(b" ", written).decode(errors="replace")
