"""Behaviour that only a process of its own shows: signals, pipes, start-up, the terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Run

from tui_transformer import crash
from tui_transformer.cli import terminal
from tui_transformer.text import vocabulary

COMMAND = (sys.executable, "-m", "tui_transformer")
LONG = ("--text", "the " * 3000, "--layers", "8")


def _shell(environment: dict[str, str], streams: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with its streams as a shell redirects them."""
    line = ["sh", "-c", f'exec "$@" {streams}', "sh", *COMMAND, *arguments]
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_ends_a_trace_with_nothing_half_written(environment, tmp_path, number) -> None:
    arguments = [*COMMAND, "trace", "--out", "a.npz", *LONG]
    with subprocess.Popen(arguments, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 30
        while not any(path.stat().st_size for path in tmp_path.iterdir()):
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    how = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert err == f"tui-transformer: trace was {how}: what it had not finished is not written\n"
    assert list(tmp_path.iterdir()) == []


def _python(environment: dict[str, str], script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


BEGINNING = """
import builtins, signal, sys
from tui_transformer.__main__ import main
sys.argv[1:] = ["models"]
load = builtins.__import__

def loading(name, *more):
    if name == "typer":
        signal.raise_signal(signal.SIGINT)
    return load(name, *more)

builtins.__import__ = loading
main()
"""


def test_an_interrupt_while_the_program_is_loaded_is_no_traceback(environment) -> None:
    ended = _python(environment, BEGINNING)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


LOSING = """
import os, signal, time, weakref
from tui_transformer.cli import main

class Taken: pass

def work(**_):
    taken = Taken()
    lose = weakref.ref(taken, lambda _: os.kill(os.getpid(), signal.{}))
    del taken
    time.sleep(20)

main.app = work
main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_an_object_is_taken_down_ends_too(environment, number: signal.Signals) -> None:
    ended = _python(environment, LOSING.format(number.name))
    assert ended.returncode in {128 + number, -number}
    assert "ignored" not in ended.stderr


LATE = """
import os
from functools import partial
from tui_transformer.cli import main

class Late:
    __del__ = partial(os.kill, os.getpid(), {:d})

late, main.app = Late(), lambda **_: print("written")
main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_when_all_is_done_changes_nothing(environment, number: signal.Signals) -> None:
    ended = _python(environment, LATE.format(number))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "written\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "hidden", "--format", "csv", "--text", "the " * 300),
        ("generate", "--model", "decoder", "--text", "the", "--max-length", "60000", "--max-new-tokens", "50000"),
    ],
    ids=["show", "generate"],
)
def test_a_reader_that_leaves_is_no_error(environment, arguments) -> None:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *arguments], env=environment, **streams) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=30)
    assert process.returncode == 128 + signal.SIGPIPE


PLAIN = ("--plain", "--model", "encoder")
CLOSED, FULL = (">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")


@pytest.mark.parametrize(
    ("arguments", "streams", "why"),
    [
        *((each, *CLOSED) for each in (("vocab", "list"), ("--version",), ("--help",), PLAIN)),
        *((each, *FULL) for each in (("vocab", "list"), ("--version",), PLAIN)),
    ],
)
def test_standard_output_that_takes_nothing_is_one_line(environment, arguments, streams, why) -> None:
    ended = _shell(environment, f"</dev/null {streams}", *arguments)
    assert ended.stderr == f"tui-transformer: standard output: cannot be written: {why}\n"
    assert ended.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code"), [(("nothing",), 2), (("show", "--format", "q"), 2), (("show", "nothing"), 1)]
)
def test_messages_that_cannot_be_written_leave_the_code_as_it_is(environment, arguments, code) -> None:
    for streams in ("2>/dev/full", "2>&-", ">/dev/full 2>/dev/full"):
        assert _shell(environment, f"</dev/null {streams}", *arguments).returncode == code


GONE = """
import sys
from contextlib import suppress
from tui_transformer.cli import main

def draw(**_):
    with suppress(OSError):
        sys.stderr.write("what was drawn last")
    return 129

main.app = draw
main.main()
"""


def test_a_terminal_that_is_gone_leaves_the_code_as_it_is(environment) -> None:
    line = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", sys.executable, "-c", GONE]
    assert subprocess.run(line, env={**environment, "PYTHONUNBUFFERED": ""}, timeout=60, check=False).returncode == 129


def test_standard_input_that_is_closed_has_no_texts(environment, tmp_path) -> None:
    arguments = ("survey", "-", "--model", "story", "--measure", "entropy", "--out", str(tmp_path / "a.csv"))
    ended = _shell(environment, "<&-", *arguments)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("tui-transformer: ")
    assert "mistake" not in ended.stderr


@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
def test_what_goes_to_a_file_is_written_whole_where_streams_are_closed(run, environment, tmp_path, streams) -> None:
    shown = ("show", "weights", "--model", "encoder")
    assert _shell(environment, streams, *shown, "--out", str(tmp_path / "a.csv")).returncode == 0
    assert (tmp_path / "a.csv").read_bytes().decode() == run(*shown, "--format", "csv").out


def test_output_is_utf_8_in_any_locale(environment: dict[str, str]) -> None:
    odd = {**environment, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run([*COMMAND, "show", "scores"], env=odd, capture_output=True, check=True)
    assert "Q Kᵀ" in ended.stdout.decode("utf-8")


TO_DRAW = ("textual", "plotext", "rich")
CALLED = """
import sys
from tui_transformer.cli.main import main
def check(*heavy):
    assert not [name for name in heavy if name in sys.modules], sys.argv
def call(line):
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
"""
TRAIN = "train texts.txt --task next-word --out run --steps 1 --d-model 16 --heads 2 --length 4 --device cpu"
IMPORTED = f"""{CALLED}
for option in ("--version", "--help"):
    call(option)
    check(*{TO_DRAW}, "numpy", "tokenizers")
call({TRAIN!r})
check(*{TO_DRAW}, "tokenizers")
call("show scores")
check(*{TO_DRAW})
import tui_transformer.explorer.run
from tui_transformer.cli import diff, exercise, explore
check("textual")
"""
EXPLORED = f"{CALLED}\nimport tui_transformer.explorer.app\ncheck('tui_transformer.diagnosis')"


@pytest.mark.parametrize("script", [IMPORTED, EXPLORED], ids=["commands", "explorer"])
def test_what_is_heavy_is_imported_where_it_is_needed_alone(environment, tmp_path, script) -> None:
    (tmp_path / "texts.txt").write_text("once there was a fox\n" * 20)
    subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)


HELPS = """
import sys
from tui_transformer.__main__ import main
for command in sys.argv[1:]:
    sys.argv[1:] = [*command.split(), "--help"]
    main()
print("typer" in sys.modules)
"""


def test_the_help_of_a_command_is_said_without_loading_more(run: Run, environment) -> None:
    commands = ("show", "vocab compare", "weights", "serve", "diff")
    ended = _python(environment, HELPS, *commands)
    assert ended.stdout == "".join(run(*each.split(), "--help").out for each in commands) + "False\n"


def test_completion_offers_steps_and_vocabularies(environment: dict[str, str]) -> None:
    def offered(line: str, word: int) -> list[str]:
        variables = {"_TUI_TRANSFORMER_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
        return _shell(environment | variables, "").stdout.split()

    assert "decoder.0.output" in offered("tui-transformer show --model decoder dec", 4)
    assert offered("tui-transformer show --vocab wav", 3) == ["waves"]


@pytest.mark.parametrize(("term", "reason"), [("dumb", "TERM=dumb"), ("xterm", "input, output and errors")])
def test_a_terminal_that_cannot_show_the_screen_is_refused(environment, term, reason) -> None:
    leader, follower = pty.openpty()
    streams = {"stdin": follower, "stdout": follower, "stderr": subprocess.PIPE}
    try:
        ended = subprocess.run(COMMAND, env={**environment, "TERM": term}, **streams, text=True, timeout=30)
    finally:
        os.close(follower)
        os.close(leader)
    assert ended.returncode == 2
    assert "show" in ended.stderr
    assert reason in ended.stderr


BEHIND = """
import fcntl, os, pty, signal, termios, time, tty
from tui_transformer.cli.terminal import escape

typist, terminal = pty.openpty()
os.dup2(terminal, 0)
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
lines, shell = termios.tcgetattr(0), os.fork()
if not shell:
    signal.pause()
os.setpgid(shell, shell)

def pressed():
    os.write(typist, b"\\x1b")
    return any(pressed_now() or time.sleep(0.01) for _ in range(50))  # what is typed comes a moment later

with escape(taken=False) as pressed_now:
    print(pressed())
    os.tcsetpgrp(0, shell)
    tty.setcbreak(0)  # as a shell reads a line that is typed
    print(pressed())
    os.tcsetpgrp(0, os.getpgrp())
    termios.tcsetattr(0, termios.TCSAFLUSH, lines)
    print(pressed())
    os.tcsetpgrp(0, shell)
print(bool(termios.tcgetattr(0)[3] & termios.ICANON))
os.kill(shell, signal.SIGKILL)
"""


def test_what_is_typed_while_a_command_is_in_the_background_is_for_the_shell(environment) -> None:
    ended = _python(environment, BEHIND)
    assert (ended.stdout.split(), ended.stderr) == (["True", "False", "True", "False"], "")


# Threads


ONE, OWN = {"OPENBLAS_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "3"}


def test_the_number_of_threads_goes_by_what_the_cores_have_to_do(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.delitem(sys.modules, "numpy")
    for load, given, wanted in ((9.0, {}, ONE), (0.5, {}, {}), (9.0, OWN, OWN), (None, {}, {})):
        environment = dict(given)
        monkeypatch.setattr(os, "environ", environment)
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0), raising=False)
        if load is None:
            monkeypatch.delattr(os, "getloadavg")
        terminal.choose_threads()
        assert environment == wanted, load
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 0.0, 0.0), raising=False)
    monkeypatch.setitem(sys.modules, "numpy", sys)  # once it is there, nothing is changed
    terminal.choose_threads()
    assert environment == {}


# Mistakes


def _raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_a_mistake_of_the_program_leaves_a_report(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "built_in_vocabularies", _raising(ZeroDivisionError("division by zero")))
    ended = run("vocab", "list", code=1)
    assert "Traceback" not in ended.err
    (report,) = (tmp_path / "state").rglob("*.txt")
    assert report.name in ended.err
    text = report.read_text(encoding="utf-8")
    assert "ZeroDivisionError: division by zero" in text
    assert "numpy: " in text


NO_MEMORY = "tui-transformer: not enough memory: use fewer tokens or smaller sizes"
DENIED = "tui-transformer: a␛.txt: Permission denied: check the path and its permissions\n"
ENDS = (
    (MemoryError(), 1, f"{NO_MEMORY}\n"),
    (MemoryError("Unable to allocate 9.00 GiB"), 1, f"{NO_MEMORY} (Unable to allocate 9.00 GiB)\n"),
    (KeyboardInterrupt(), 130, ""),
    (PermissionError(13, "Permission denied", "a\x1b.txt"), 1, DENIED),
)


def test_what_is_no_mistake_of_the_program_is_one_line_without_a_report(run: Run, tmp_path, monkeypatch) -> None:
    for error, code, said in ENDS:
        monkeypatch.setattr(vocabulary, "built_in_vocabularies", _raising(error))
        ended = run("vocab", "list")
        assert (ended.code, ended.err.removeprefix("\n")) == (code, said)
        assert not (tmp_path / "state").exists()


def test_a_report_goes_elsewhere_where_the_state_folder_cannot_be_made(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    written = crash.write_report(ValueError("x"))
    assert written is not None
    assert written.parent == tmp_path
