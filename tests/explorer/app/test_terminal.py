"""The explorer in a real terminal."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")]
PATIENCE = 30.0
PROMPT = "READY>"
PROGRAM = "-m tui_transformer --model encoder"
CRASHING = """
from tui_transformer.explorer.main import screen as main_screen
from tui_transformer.cli.main import main
def fail(self): self.app._handle_exception(RuntimeError("secret of the user"))
main_screen.MainScreen.action_menu = fail
main()
"""

SLOW = """
import time
from tui_transformer.explorer import run
from tui_transformer.cli.main import main
begin = run.open_session
def begin_late(*given, **more):
    time.sleep(4)
    return begin(*given, **more)
run.open_session = begin_late
main()
"""


class Terminal:
    """A shell in tmux, 80 × 24."""

    def __init__(self, folder: Path, name: str, term: str) -> None:
        self.server = ["tmux", "-S", str(folder / "socket"), "-f", str(folder / "tmux.conf")]
        (folder / "tmux.conf").write_text(f"set -g default-terminal {term}\n")
        self.folder, self.marks = folder, 0
        root = str(Path(__file__).parents[3])
        environment = {"PYTHONPATH": root, "PS1": PROMPT, "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        given = " ".join(f"{key}='{value}'" for key, value in environment.items())
        shell = f"cd '{folder}' && env -u LINES -u COLUMNS {given} bash --norc --noprofile"
        self.tmux("new-session", "-d", "-s", name, "-x", "80", "-y", "24", shell)
        self.until(lambda: PROMPT in self.screen())

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run([*self.server, *arguments], capture_output=True, text=True, timeout=30, check=True)
        return done.stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def line(self, command: str) -> None:
        self.tmux("send-keys", "-l", command)
        self.keys("Enter")

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, self.screen()
            time.sleep(0.05)

    def shown(self, text: str) -> None:
        self.until(lambda: text in self.screen())

    def explore(self, arguments: str = PROGRAM, shown: str = "/25") -> None:
        self.line(f"clear; {sys.executable} {arguments}; echo code=$?; stty -a | grep -o ' [-]*echo '")
        self.shown(shown)

    def goes_on(self, shown: str) -> None:
        """Let what was stopped go on."""
        self.line("fg >/dev/null; echo code=$?; stty -a | grep -o ' [-]*echo '")
        self.shown(shown)

    def ended(self, code: int) -> None:
        """The program ended with this code, and the terminal is as it was."""
        self.shown(f"code={code}")
        assert self.tmux("display-message", "-p", "#{alternate_on}#{mouse_any_flag}").strip() == "00"
        screen = self.screen()
        assert "Vocabulary" not in screen
        self.shown(" echo")
        self.line("echo still $((40 + 2))")
        self.shown("still 42")

    def process(self) -> int:
        """The explorer's process."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        children = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, timeout=30, check=True)
        return int(children.stdout.split()[0])


@pytest.fixture
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    folder = Path(tempfile.mkdtemp(prefix="tui"))  # a short path, as that of a socket has to be
    opened = Terminal(folder, "test", getattr(request, "param", "tmux-256color"))
    try:
        yield opened
    finally:
        subprocess.run([*opened.server, "kill-server"], capture_output=True, timeout=30, check=False)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("terminal", ["xterm", "xterm-256color", "screen"], indirect=True)
def test_it_opens_steps_suspends_and_leaves_the_terminal_as_it_was(terminal: Terminal):
    terminal.explore()
    terminal.shown("forcefully")
    terminal.keys("Space")
    terminal.shown("13/25")
    terminal.tmux("resize-window", "-x", "60", "-y", "20")
    terminal.keys("Space")
    terminal.shown("14/25")
    terminal.keys("C-z")
    terminal.shown("Stopped")
    terminal.goes_on("14/25")
    terminal.keys("Space")
    terminal.shown("15/25")
    terminal.keys("q")
    terminal.ended(0)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)]
)
def test_a_signal_ends_it_in_order(terminal: Terminal, number: signal.Signals, code: int):
    terminal.explore()
    os.kill(terminal.process(), number)
    terminal.ended(code)


def test_a_terminal_that_is_closed_ends_it(terminal: Terminal):
    terminal.explore()
    looks = ["ps", "-o", "stat=", "-p", str(terminal.process())]
    terminal.tmux("kill-server")
    terminal.until(lambda: subprocess.run(looks, capture_output=True, check=False).stdout[:1] in (b"", b"Z"))


def test_a_crash_leaves_a_short_message_and_a_report(terminal: Terminal):
    (terminal.folder / "crashing.py").write_text(CRASHING)
    terminal.explore("crashing.py --model encoder")
    terminal.keys("m")
    terminal.ended(1)
    screen = terminal.screen()
    assert "tui-transformer: the program made a mistake (RuntimeError)" in screen
    assert "Traceback" not in screen
    reports = list(terminal.folder.rglob("tui-transformer-crash-*.txt"))
    assert len(reports) == 1
    assert "secret of the user" not in screen
    assert "RuntimeError" in reports[0].read_text()


def test_quitting_while_it_computes_is_prompt(terminal: Terminal):
    ids = terminal.folder / "ids"
    ids.write_text(",".join(str(i % 8) for i in range(4096)))
    terminal.explore(f'{PROGRAM} --ids "$(cat ids)" --layers 1')
    terminal.keys("Space", "Space", "Space", "q")
    terminal.ended(0)


@pytest.fixture
def slow(terminal: Terminal) -> str:
    (terminal.folder / "slow.py").write_text(SLOW)
    return f"{terminal.folder / 'slow.py'} --model encoder --text 'the waves'"


def test_a_frame_stands_while_a_model_is_read_and_what_is_typed_meanwhile_is_done(terminal: Terminal, slow: str):
    terminal.explore(slow, "reading encoder · ")
    assert "╭─ Sentence ─" in terminal.screen()
    assert "the waves" in terminal.screen()
    terminal.keys("Space", "Space")
    terminal.shown("14/25")
    terminal.keys("q")
    terminal.ended(0)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_a_model_is_read_gives_the_terminal_back(terminal: Terminal, slow: str, stop: signal.Signals):
    terminal.explore(slow, "reading encoder · ")
    os.kill(terminal.process(), stop)
    terminal.ended(130 if stop == signal.SIGINT else 128 + stop)


def test_a_model_that_is_read_can_be_stopped_and_goes_on(terminal: Terminal, slow: str):
    terminal.line(f"clear; {sys.executable} {slow}")
    terminal.shown("reading encoder · ")
    terminal.keys("C-z")
    terminal.shown("Stopped")
    assert terminal.tmux("display-message", "-p", "#{alternate_on}").strip() == "0"
    terminal.goes_on("/25")
    terminal.keys("q")
    terminal.ended(0)


def test_what_is_wrong_with_a_model_that_took_long_is_said_on_the_terminal_as_it_was(terminal: Terminal, slow: str):
    terminal.explore(f"{slow} --edit nothing=1", "no step is called 'nothing'")
    terminal.ended(1)
