"""A tokenizer that holds the screen's own thread: escape and signals end it at once, and no sooner than they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("looks at processes", allow_module_level=True)

from .run import PATIENCE, TITLE, _environment, check_terminal
from .terminal import Terminal, plain

SLOW = r"[ab]*[ab]*\z"
"""Takes n² steps at every of n places."""

HELD = "a" * 3_000 + "!"
"""A text that takes it all the time that there is."""

TOLD = 2.5
"""Seconds of the processor that the tokenizer may go on for, where it is ended at once; it has 5 s and more."""


@pytest.fixture
def terminal(tmp_path: Path):
    part = {"type": "Split", "pattern": {"Regex": SLOW}, "behavior": "Isolated", "invert": False}
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"}
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": part, "model": model})
    )
    program = [sys.executable, "-m", "tui_transformer", "--model", "encoder", "--vocab", "tokenizer.json"]
    opened = Terminal([*program, "--text", "a"], tmp_path, _environment(tmp_path), (100, 30))
    try:
        shown(opened, TITLE)
        yield opened
    finally:
        opened.close()


def shown(terminal: Terminal, text: str) -> None:
    """Wait until a text was written from now on."""
    seen, until = b"", time.monotonic() + PATIENCE
    while text not in plain(seen):
        assert time.monotonic() < until, plain(seen)
        seen += terminal.read(0.05)


def hold(terminal: Terminal) -> int:
    """Type a sentence that holds the tokenizer, whose process this gives once it works."""
    terminal.send(b"i", PATIENCE)
    shown(terminal, "up to")
    terminal.send(b"\x1b[200~" + HELD.encode() + b"\x1b[201~", PATIENCE)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        terminal.read(0.05)
        looked = ["pgrep", "-P", str(terminal.process.pid), "-f", "guarded_child"]
        for found in subprocess.run(looked, capture_output=True, text=True, check=False).stdout.split():
            if busy(int(found)) > 0.3:
                return int(found)
    raise AssertionError("the tokenizer does not work")


def busy(process: int) -> float:
    """Seconds of the processor that a process has used; 0 where it is no more."""
    try:
        times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def soon(holds: Callable[[], object], terminal: Terminal, child: int) -> None:
    begun, until = busy(child), time.monotonic() + PATIENCE
    while not holds():
        assert busy(child) - begun < TOLD
        assert time.monotonic() < until
        terminal.read(0.02)


def test_escape_ends_a_tokenizer_that_the_screen_waits_for_and_a_signal_the_program(terminal: Terminal):
    child = hold(terminal)
    terminal.send(b"xyz", PATIENCE)  # typed ahead of it
    terminal.send(b"\x1b", PATIENCE)
    soon(lambda: not Path(f"/proc/{child}").exists(), terminal, child)
    assert not terminal.ended
    terminal.drain(0.5, PATIENCE)
    child = hold(terminal)
    terminal.process.send_signal(signal.SIGTERM)
    soon(lambda: terminal.ended, terminal, child)
    assert terminal.process.returncode == 128 + signal.SIGTERM
    assert not Path(f"/proc/{child}").exists()
    check_terminal(terminal)
