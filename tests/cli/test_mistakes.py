from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Run

from tui_transformer import crash
from tui_transformer.text import vocabulary


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
