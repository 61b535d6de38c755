"""Storms, small ones: that they hold, and that what does not hold is seen."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("a pseudo-terminal is needed", allow_module_level=True)

from .events import storm
from .run import HELP, PATIENCE, REFERENCES, SIZE, TITLE, _environment, _until, check_terminal, run
from .terminal import Terminal, plain

pytestmark = pytest.mark.slow


def test_a_seed_gives_the_same_storm_again():
    assert list(storm(5, 200)) == list(storm(5, 200))
    assert list(storm(5, 200)) != list(storm(6, 200))


@pytest.mark.parametrize(("model", "gap"), [("encoder", 0.0), ("t5", 0.004)])
def test_a_storm_holds(model: str, gap: float):
    outcome = run(7, model, 250, gap)
    assert not outcome.faults, str(outcome)


def test_a_word_behind_a_step_back_over_columns_is_a_word():
    assert HELP in plain(b"\xe2\x95\xad\x1b[B\b\bKeys \x1b[6;14H\xe2\x94\x80")


class Opened:
    """A program that fails, in a terminal."""

    def __init__(self, folder: Path, script: str, *arguments: str) -> None:
        (folder / "failing.py").write_text(script, encoding="utf-8")
        command = [sys.executable, str(folder / "failing.py"), *arguments]
        self.terminal = Terminal(command, folder, _environment(folder), SIZE)

    def end(self) -> str:
        """Wait until it has ended; what it says then."""
        end = time.monotonic() + PATIENCE
        while not self.terminal.ended:
            self.terminal.read(0.1)
            assert time.monotonic() < end, plain(self.terminal.written)[-2000:]
        self.terminal.drain(0.2, 5.0)
        return plain(self.terminal.written)


PLANTED = {
    "the main screen": ("MainScreen.compose", b""),
    "a widget of it": ("HeatMap.on_mount", b""),
    "the reading of keys": ("Parser.parse_mouse_code", b"\x1b[<0;5;5M"),
}
SCRIPT = """
import sys
from tui_transformer.cli.main import main
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.guard.driver import Parser
from tui_transformer.explorer.widgets.heat_map import HeatMap

def fail(*_, **__):
    raise RuntimeError("secret of the user")

owner, name = "{where}".split(".")
setattr(globals()[owner], name, fail)
sys.argv = ["tui-transformer", "--model", "encoder"]
main()
"""


@pytest.mark.parametrize("what", PLANTED)
def test_a_mistake_of_the_program_ends_it_with_one_line_a_report_and_the_terminal_as_before(what: str, tmp_path: Path):
    where, keys = PLANTED[what]
    opened = Opened(tmp_path, SCRIPT.format(where=where))
    terminal = opened.terminal
    try:
        if keys:
            _until(terminal, TITLE)
            terminal.drain(0.5, 10.0)
            terminal.send(keys, 10.0)
        text = opened.end()
        assert terminal.process.returncode == 1, text[-2000:]
        check_terminal(terminal)
    finally:
        terminal.close()
    assert text.count("the program made a mistake (RuntimeError): please report it") == 1
    assert "secret" not in text
    assert "Traceback" not in text
    reports = list(tmp_path.rglob("tui-transformer-crash-*.txt"))
    assert len(reports) == 1
    assert "RuntimeError" in reports[0].read_text(encoding="utf-8")


CHANGED = """
import os, sys
from pathlib import Path
from tui_transformer.cli.main import main
from tui_transformer.explorer import run

opened = run.open_session

def opened_and_changed(*given, **named):
    session = opened(*given, **named)
    session.trace["decoder.1.self_attention.norm"]
    path = Path(sys.argv[-1], "model.safetensors")
    {change}
    return session

run.open_session = opened_and_changed
sys.argv[1:1] = ["--ids", "1 2 3", "--model"]
main()
"""
CHANGES = {
    "cut": ("os.truncate(path, 3000)", True),
    "emptied": ("os.truncate(path, 0)", True),
    "replaced": ("path.with_name('other').write_bytes(b'0'), path.with_name('other').replace(path)", False),
    "deleted": ("path.unlink()", False),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_weights_file_that_changes_while_it_is_open_leaves_program_and_terminal_whole(how: str, tmp_path: Path):
    change, is_lost = CHANGES[how]
    folder = tmp_path / "m"
    shutil.copytree(REFERENCES / "gpt2", folder)
    opened = Opened(tmp_path, CHANGED.format(change=change), "m")
    terminal = opened.terminal
    try:
        _until(terminal, TITLE)
        terminal.send(b"}" * 9, 10.0)
        if is_lost:  # it may be said before a key is read: what is near is computed ahead
            _until(terminal, "cut while it was open", 0)
        terminal.drain(0.5, 10.0)
        terminal.send(b"q", 10.0)
        text = opened.end()
        assert terminal.process.returncode == 0, text[-2000:]
        check_terminal(terminal)
    finally:
        terminal.close()
    assert ("cut while it was open" in " ".join(text.split())) == is_lost
    assert "Traceback" not in text
