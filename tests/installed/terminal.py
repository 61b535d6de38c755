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
from collections.abc import Mapping, Sequence

ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=$]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>P\\])")
PATIENCE = 120.0
QUIET = 0.3
"""Seconds without output after which a screen is drawn."""


def explore(
    command: Sequence[str], size: tuple[int, int], keys: Sequence[tuple[bytes, str | None]], **more: object
) -> tuple[int, str]:
    """The exit code and all that was written: "quit" is on the screen, and each key is pressed after the one before.

    A text with a key is waited for, an empty one for whatever is written: on a busy machine an escape may be taken for
    a part of the key behind it.
    """
    master, slave = pty.openpty()
    columns, lines = size
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, **more) as process:
        os.close(slave)
        try:
            seen = _read(master, "quit")
            for key, mark in keys:
                os.write(master, key)
                seen += _read(master, mark)
            return process.wait(PATIENCE), _text(seen)
        finally:
            process.kill()
            os.close(master)


def _text(written: bytes) -> str:
    return ESCAPES.sub(b"", written).decode(errors="replace")


def _read(master: int, mark: str | None) -> bytes:
    """The output until it is quiet, some with the mark among it; whatever has come where the program has ended."""
    seen, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not select.select([master], [], [], QUIET)[0]:
            if mark is None or (seen and mark in "".join(_text(seen).split())):  # blanks may be there already
                return seen
            continue
        try:
            seen += os.read(master, 1 << 16)
        except OSError:
            return seen
    raise TimeoutError(f"never written: {mark!r}; seen: {_text(seen)[-400:]!r}")


def terminal_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with a terminal of many colours and no other size."""
    kept = {name: value for name, value in environment.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
