"""The program in a terminal of its own, its keys pressed and its end awaited."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=$]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>P\\])|\x08")
PATIENCE = 120.0
ESCAPE = b"\x1b[27u"
"""As terminals write it that tell it from the beginning of a sequence: a busy machine takes one alone for that."""

OPENED = {b"\r": b"Lookinside", b"?": b"Keys", ESCAPE: b"quit"}
"""What is written, without blanks, where a screen is opened or left by a key."""

QUIET = 0.3
"""Seconds without output after which a screen is drawn."""


def explore(command: Sequence[str], size: tuple[int, int], keys: Sequence[bytes], **more: object) -> tuple[int, str]:
    """The exit code and all that was written: once "quit" is on the screen, the keys are pressed one by one.

    What is shown only by a screen that a key opens is waited for: keys typed ahead may find the screen before.
    """
    master, slave = pty.openpty()
    columns, lines = size
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, **more) as process:
        os.close(slave)
        try:
            seen = _read(master, lambda seen: b"quit" in ESCAPES.sub(b"", seen))
            for key in keys:
                os.write(master, key)
                mark = OPENED.get(key, b"")
                seen += _read(master, lambda seen, mark=mark: mark in b"".join(ESCAPES.sub(b"", seen).split()))
            seen += _read(master, lambda _: process.poll() is not None)  # it may wait until it is read
            return process.wait(PATIENCE), ESCAPES.sub(b"", seen).decode(errors="replace")
        finally:
            process.kill()
            os.close(master)


def _read(master: int, done: Callable[[bytes], bool] = lambda _: True) -> bytes:
    """The output until it is quiet and all of it is there; whatever has come where the program has ended."""
    seen, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not select.select([master], [], [], QUIET)[0]:
            if done(seen):
                return seen
            continue
        try:
            seen += os.read(master, 1 << 16)
        except OSError:
            return seen
    raise TimeoutError(f"waited in vain; seen: {ESCAPES.sub(b'', seen)[-400:]!r}")


def terminal_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with a terminal of many colours and no other size."""
    kept = {name: value for name, value in environment.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
