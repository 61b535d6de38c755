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


def _run(environment: dict[str, str], *arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False, **more
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_ends_a_trace_with_nothing_half_written(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    arguments = [*COMMAND, "trace", "--out", "a.npz", *LONG]
    with subprocess.Popen(arguments, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        _wait_for_bytes(tmp_path)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def _wait_for_bytes(folder: Path) -> None:
    until = time.monotonic() + 30
    while not any(path.stat().st_size for path in folder.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_reader_that_leaves_is_no_error(environment: dict[str, str]) -> None:
    arguments = [*COMMAND, "show", "hidden", "--format", "csv", "--text", "the " * 2000]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=30)
    assert process.returncode == 128 + signal.SIGPIPE


SAYS = [("answer",), ("--version",), ("--help",), ("--plain", "--model", "encoder")]


@pytest.mark.parametrize("arguments", SAYS, ids=" ".join)
@pytest.mark.parametrize(
    ("where", "why"),
    [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")],
    ids=["closed", "full"],
)
def test_standard_output_that_takes_nothing_is_one_line(environment, arguments, where, why) -> None:
    line = f'exec "$@" </dev/null {where}'
    ended = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.stderr == f"tui-transformer: standard output: cannot be written: {why}\n"
    assert ended.returncode == 1


def test_standard_input_that_is_closed_has_no_texts(environment, tmp_path) -> None:
    arguments = ("survey", "-", "--model", "story", "--measure", "entropy", "--out", str(tmp_path / "a.csv"))
    line = 'exec "$@" <&-'
    ended = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("tui-transformer: ")
    assert "mistake" not in ended.stderr


@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
def test_what_goes_to_a_file_is_written_whole_where_streams_are_closed(environment, tmp_path, streams) -> None:
    line = f'exec "$@" {streams}'
    arguments = ("show", "weights", "--model", "encoder", "--out", str(tmp_path / "a.csv"))
    subprocess.run(["sh", "-c", line, "sh", *COMMAND, *arguments], env=environment, capture_output=True, check=True)
    written = (tmp_path / "a.csv").read_text()
    arguments = ("show", "weights", "--model", "encoder", "--format", "csv")
    assert written == _run(environment, *arguments).stdout


def test_output_is_utf_8_in_any_locale(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [*COMMAND, "show", "scores"],
        env={**environment, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert "Q Kᵀ" in ended.stdout.decode("utf-8")


def test_help_and_version_import_nothing_heavy(environment: dict[str, str]) -> None:
    code = (
        "import sys\nfrom tui_transformer.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n"
        "    print([name for name in ('numpy', 'textual', 'plotext', 'rich', 'tokenizers') if name in sys.modules])\n"
    )
    for option in ("--version", "--help"):
        ended = subprocess.run(
            [sys.executable, "-c", code, option], env=environment, capture_output=True, text=True, check=True
        )
        assert ended.stdout.splitlines()[-1] == "[]"


def test_headless_commands_import_no_terminal_library(environment: dict[str, str]) -> None:
    code = (
        "import sys\nfrom tui_transformer.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n"
        "    print([name for name in ('textual', 'plotext', 'rich') if name in sys.modules])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "show", "scores"], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"


def test_completion_offers_steps_and_vocabularies(environment: dict[str, str]) -> None:
    def offered(line: str, word: int) -> list[str]:
        variables = {"_TUI_TRANSFORMER_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
        return _run({**environment, **variables}).stdout.split()

    assert "decoder.0.output" in offered("tui-transformer show --model decoder dec", 4)
    assert offered("tui-transformer show --vocab wav", 3) == ["waves"]


@pytest.mark.parametrize(("term", "reason"), [("dumb", "TERM=dumb"), ("xterm", "input, output and errors")])
def test_a_terminal_that_cannot_show_the_screen_is_refused(environment: dict[str, str], term: str, reason: str) -> None:
    leader, follower = pty.openpty()
    try:
        ended = subprocess.run(
            COMMAND,
            env={**environment, "TERM": term},
            stdin=follower,
            stdout=follower,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(follower)
        os.close(leader)
    assert ended.returncode == 2
    assert "show" in ended.stderr
    assert reason in ended.stderr


def test_nothing_of_the_screen_is_loaded_before_it_is_said_how_often_it_draws(environment: dict[str, str]) -> None:
    code = (
        "import sys\nimport tui_transformer.explorer.run\nfrom tui_transformer.cli import diff, exercise, explore\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'textual'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


# Threads


ONE = {terminal.PAUSE: terminal.SHORT, "OPENBLAS_NUM_THREADS": "1"}
FREE = {terminal.PAUSE: terminal.SHORT}


@pytest.mark.parametrize(
    ("load", "given", "wanted"),
    [
        (9.0, {}, ONE),
        (0.5, {}, FREE),
        (9.0, {"OMP_NUM_THREADS": "3"}, FREE | {"OMP_NUM_THREADS": "3"}),
        (9.0, {terminal.PAUSE: "4"}, ONE | {terminal.PAUSE: "4"}),
        (None, {}, FREE),
    ],
)
def test_the_number_of_threads_goes_by_what_the_cores_have_to_do(monkeypatch, load, given, wanted):
    environment = dict(given)
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.delitem(sys.modules, "numpy")
    if load is None:
        monkeypatch.delattr(os, "getloadavg", raising=False)
    else:
        monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    terminal.choose_threads()
    assert environment == wanted


def test_nothing_is_changed_once_numpy_is_there(monkeypatch):
    environment: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setitem(sys.modules, "numpy", sys)
    terminal.choose_threads()
    assert environment == {}


# Mistakes


def _raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_a_mistake_of_the_program_leaves_a_report(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "built_in_vocabularies", _raising(ZeroDivisionError("division by zero")))
    ended = run("vocab", "list")
    assert ended.code == 1
    assert "Traceback" not in ended.err
    (report,) = (tmp_path / "state").rglob("*.txt")
    assert report.name in ended.err
    text = report.read_text(encoding="utf-8")
    assert "ZeroDivisionError: division by zero" in text
    assert "numpy: " in text


def test_too_little_memory_is_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "built_in_vocabularies", _raising(MemoryError()))
    ended = run("vocab", "list")
    assert ended.code == 1
    assert ended.err == "tui-transformer: not enough memory: use fewer tokens or smaller sizes\n"
    assert not (tmp_path / "state").exists()


def test_an_interrupt_is_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "built_in_vocabularies", _raising(KeyboardInterrupt()))
    assert run("vocab", "list").code == 130


def test_a_report_goes_elsewhere_where_the_state_folder_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    written = crash.write_report(ValueError("x"))
    assert written is not None
    assert written.parent == tmp_path


def test_a_file_that_the_system_refuses_is_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        vocabulary, "built_in_vocabularies", _raising(PermissionError(13, "Permission denied", "a\x1b.txt"))
    )
    ended = run("vocab", "list")
    assert ended.code == 1
    assert ended.err == "tui-transformer: a␛.txt: Permission denied: check the path and its permissions\n"
    assert list((tmp_path).rglob("*crash*")) == []
