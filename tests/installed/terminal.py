"""The program in a terminal of its own, its keys pressed and its end awaited."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.explorer.storm.terminal import Terminal, plain

PATIENCE = 120.0
ESCAPE = b"\x1b[27u"
"""As terminals write it that tell it from the beginning of a sequence: a busy machine takes one alone for that."""

OPENED = {b"\r": "Lookinside", b"?": "Keys", ESCAPE: "quit"}
"""What is written, without blanks, where a screen is opened or left by a key."""

QUIET = 0.3
"""Seconds without output after which a screen is drawn."""


def explore(
    command: Sequence[str], size: tuple[int, int], keys: Sequence[bytes], env: Mapping[str, str]
) -> tuple[int, str]:
    """The exit code and all that was written: once "quit" is on the screen, the keys are pressed one by one.

    What is shown only by a screen that a key opens is waited for: keys typed ahead may find the screen before.
    """
    terminal = Terminal(command, Path.cwd(), env, size)
    try:
        seen = _read(terminal, lambda seen: "quit" in seen)
        for key in keys:
            terminal.send(key, PATIENCE)
            mark = OPENED.get(key, "")
            seen += _read(terminal, lambda seen, mark=mark: mark in seen)
        seen += _read(terminal, lambda _: False)
        return terminal.process.wait(PATIENCE), seen
    finally:
        terminal.close()


def _read(terminal: Terminal, done: Callable[[str], bool]) -> str:
    """The output until it is quiet and all of it is there, blanks aside; whatever has come where the program ended."""
    seen, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        ended = terminal.ended
        seen += terminal.drain(QUIET, PATIENCE)
        if ended or done("".join(plain(seen).split())):
            return plain(seen)
    raise TimeoutError(f"waited in vain; seen: {plain(seen)[-400:]!r}")


def terminal_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with a terminal of many colours and no other size."""
    kept = {name: value for name, value in environment.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
