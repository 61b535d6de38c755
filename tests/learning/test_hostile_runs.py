"""Broken files of a run: settings, states and logs, each read or refused in one line that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st
from runs import small

from tui_transformer.learning.log import COLUMNS, Log
from tui_transformer.learning.recipes import RUN, answers_first
from tui_transformer.learning.run import ARRAYS, STATE, Run, checkpoints, newest_checkpoint


@pytest.fixture
def run(tmp_path) -> Path:
    """The folder of a run that can be resumed."""
    started = Run.start(tmp_path / "run", small(tmp_path))
    started.trainer.advance()
    started.save()
    started.close()
    return tmp_path / "run"


def resume(folder: Path) -> None:
    Run.resume(folder, {}).close()


@COUNTS
@pytest.mark.parametrize("name", [RUN, STATE, ARRAYS])
def test_broken_files_of_a_run(run, name, count):
    newest = newest_checkpoint(run)
    assert newest is not None
    path = run / name if name == RUN else newest / name
    whole = path.read_bytes()
    text = run.parent / "next-character.txt"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        files = [path, run, newest, newest / STATE, newest / ARRAYS, newest / "config.json", text]
        read_or_refused(lambda: resume(run), *files, Path("--"))  # a setting is named as its option is
        answers_first(run)

    documents = damaged(whole) if name == ARRAYS else st.one_of(changed(json.loads(whole)).map(as_json), damaged(whole))
    hold(min(count, 500), check, data=documents)


@COUNTS
def test_odd_names_of_checkpoints(run, count):
    def check(name: str) -> None:
        place = run / "checkpoints" / name
        if not place.exists():
            place.mkdir()
            read_or_refused(lambda: (checkpoints(run), newest_checkpoint(run)), run)
            place.rmdir()

    digits = st.text("0123456789٣²①", min_size=1, max_size=200)
    hold(count, check, name=digits)


LINE = dict.fromkeys(COLUMNS, 1.5) | {"step": 3, "norms": {"a": 1.0}}
LOGS = {
    "log.csv": (
        ",".join(COLUMNS) + "\n" + "".join(f"{i}{',0.5' * (len(COLUMNS) - 1)}\n" for i in range(1, 6))
    ).encode(),
    "log.jsonl": b"".join(as_json(LINE | {"step": i}) + b"\n" for i in range(1, 6)),
}


@COUNTS
@pytest.mark.parametrize("name", LOGS)
def test_broken_logs(tmp_path, name, count):
    path = tmp_path / name

    def check(data: bytes, step: int) -> None:
        path.write_bytes(data)
        log = read_or_refused(lambda: Log(path, step), path)
        if log is None:
            assert path.read_bytes() == data, "what is no log stays as it is"
        else:
            log.close()

    lines: st.SearchStrategy[Any] = damaged(LOGS[name])
    if name == "log.jsonl":
        lines = st.one_of(lines, st.lists(changed(LINE).map(as_json), max_size=4).map(b"\n".join))
    hold(count, check, data=lines, step=st.integers(0, 5))
