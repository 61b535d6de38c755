"""Behaviour that only a process of its own shows: signals, pipes, start-up, the terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
