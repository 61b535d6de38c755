from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import OF_A_MODEL, Ended, Run

from tui_transformer.cli import main as cli


@pytest.fixture
def own_signals() -> Iterator[None]:
    """The handlers of signals are afterwards as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *cli.ENDING)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def run(
    own_signals: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Run:
    """The whole command in this process, in an empty folder: exit code, which may be named, and both streams."""
    usual = getattr(request.module, "USUAL", ())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def command(*arguments: str, code: int | None = None) -> Ended:
        named = not OF_A_MODEL & {*arguments[:1]} or "--model" in arguments
        monkeypatch.setattr(sys, "argv", ["tui-transformer", *arguments, *(() if named else usual)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        given = int(ended.value.code or 0)
        assert code in (None, given), captured.err
        return Ended(given, captured.out, captured.err)

    return command


@pytest.fixture
def environment() -> dict[str, str]:
    """For commands in a process of their own."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
