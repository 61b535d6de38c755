"""A program that is stopped from outside and goes on: keys act once, and the terminal is left as it was."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("a pseudo-terminal is needed", allow_module_level=True)

from .run import PATIENCE, SIZE, TITLE, _ask, _command, _environment, _settle, _until, check_terminal
from .terminal import Terminal, plain

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("stops", [(), (signal.SIGSTOP,), (signal.SIGTSTP,)])
def test_a_program_that_goes_on_reads_every_key_once(tmp_path: Path, stops: tuple[signal.Signals, ...]):
    command = [sys.executable, "-m", "tui_transformer", "--model", "encoder"]
    terminal = Terminal(command, tmp_path, _environment(tmp_path), (160, 45))
    try:
        seen = b""
        while TITLE not in plain(seen):
            seen += terminal.drain(0.5, PATIENCE)
        for number in (*stops, signal.SIGCONT, signal.SIGCONT):
            os.kill(terminal.process.pid, number)
            terminal.drain(0.5, PATIENCE)
        opened = re.findall(r"step (\d+) of", plain(seen))
        terminal.send(b"   ", PATIENCE)
        until, steps = time.monotonic() + PATIENCE, [""]
        while not all(f"step {int(opened[-1]) + 3} of" in text for text in steps[-2:]):
            assert time.monotonic() < until, steps[-1]
            terminal.resize(159 + len(steps) % 2, 45)  # all of the screen is written again
            steps.append(plain(terminal.drain(0.7, PATIENCE)))
        terminal.send(b"q", PATIENCE)
        while not terminal.ended:
            terminal.read(0.1)
        check_terminal(terminal)
    finally:
        terminal.close()
    assert terminal.process.returncode == 0


def test_a_storm_goes_on_where_the_program_has_stopped_itself(tmp_path: Path):
    (tmp_path / "here").mkdir()
    terminal = Terminal(_command("encoder"), tmp_path / "here", _environment(tmp_path), SIZE)
    try:
        _until(terminal, TITLE)
        terminal.send(b"\x1a", PATIENCE)  # ctrl+z
        until = time.monotonic() + PATIENCE
        while Path(f"/proc/{terminal.process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < until
            terminal.drain(0.1, 1.0)
        assert "MainScreen" in _ask(terminal, tmp_path)
        assert _settle(terminal, tmp_path) == "MainScreen"
    finally:
        terminal.close()
