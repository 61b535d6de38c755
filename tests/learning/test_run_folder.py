"""Runs in their folders: saved, stopped, resumed, broken; nothing is lost."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import COUNTS, as_json, broken_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st
from refusing import refuses
from runs import small
from safetensors.numpy import load_file

from tui_transformer.errors import InputError
from tui_transformer.learning import run as run_module
from tui_transformer.learning.log import COLUMNS, Log
from tui_transformer.learning.recipes import RUN, answers_first
from tui_transformer.learning.run import ARRAYS, STATE, Run, checkpoints, newest_checkpoint
from tui_transformer.learning.settings import read_settings
from tui_transformer.learning.tasks import TASKS
from tui_transformer.model import Model


# Runs that are saved, stopped and resumed: nothing is lost
def losses(run: Run, count: int) -> list[float]:
    return [run.trainer.advance().loss for _ in range(count)]


@pytest.mark.parametrize(("task", "optimizer"), [*((task, "adamw") for task in TASKS), ("next-word", "sgd")])
def test_a_resumed_run_goes_on_bit_for_bit(tmp_path, task, optimizer):
    settings = small(tmp_path, task, optimizer=optimizer, accumulate=2, label_smoothing=0.1)
    whole = Run.start(tmp_path / "whole", settings)
    wanted = losses(whole, 5)
    first = Run.start(tmp_path / "run", settings)
    before = losses(first, 3)
    first.save()
    losses(first, 1)  # lost
    first.close()
    second = Run.resume(tmp_path / "run", {})
    assert before + losses(second, 2) == wanted
    for name, weight in whole.trainer.weights.items():
        assert np.array_equal(second.trainer.weights[name], weight), name


def test_a_step_is_in_the_log_before_its_checkpoint_is_written(tmp_path, monkeypatch):
    run = Run.start(tmp_path / "run", small(tmp_path, save_every=1))
    log = Log(tmp_path / "log.jsonl", 0)
    seen = []
    monkeypatch.setattr(Run, "save", lambda self: seen.append(len(log.path.read_text().splitlines())))
    for _ in range(2):
        run.step(log, lambda record, measured: None)
    log.close()
    run.close()
    assert seen == [1, 2]


@pytest.mark.parametrize("task", TASKS)
def test_the_folder_is_the_newest_model(tmp_path, task):
    run = Run.start(tmp_path / "run", small(tmp_path, task))
    losses(run, 2)
    run.save()
    for folder in (tmp_path / "run", tmp_path / "run" / "checkpoints" / "000002"):
        model = Model.load(folder, device="cpu")
        assert model.vocabulary.words == run.trainer.model.vocabulary.words
        assert model.config == run.trainer.model.config
        stored = load_file(folder / "model.safetensors")
        assert all(np.array_equal(stored[name], weight) for name, weight in run.trainer.weights.items())
    text = "the 3rd of May"
    assert model.encode(text).ids == run.trainer.model.encode(text).ids


def test_checkpoints_stay_as_models_and_two_can_be_gone_on_from_with_their_learning_rate(tmp_path):
    run = Run.start(tmp_path / "run", small(tmp_path))
    run.trainer.learning_rate = 3e-4
    for _ in range(3):
        run.trainer.advance()
        run.save()
    folders = checkpoints(tmp_path / "run")
    assert [path.name for path in folders] == ["000000", "000001", "000002", "000003"]
    assert [(path / "state.safetensors").exists() for path in folders] == [False, False, True, True]
    assert all(Model.load(path, device="cpu").config == run.trainer.model.config for path in folders)
    assert newest_checkpoint(tmp_path / "run") == folders[-1]
    run.close()
    assert Run.resume(tmp_path / "run", {}).trainer.learning_rate == 3e-4


def test_a_checkpoint_is_flushed_to_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    run = Run.start(tmp_path / "run", small(tmp_path))
    run.trainer.advance()
    flushed: list[str] = []
    flush, rename = os.fsync, Path.rename

    def noted(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        flush(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        if target.name == "000001":
            flushed.append("renamed")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "rename", renamed)
    run.save()
    before, after = flushed[: flushed.index("renamed")], flushed[flushed.index("renamed") + 1 :]
    kinds = {name.lstrip(".").rpartition(".")[0] for name in before}
    assert {"model.safetensors", "vocabulary.txt", "config.json", "state.safetensors", "state.json", "000001"} <= kinds
    assert after[0] == "checkpoints"


@pytest.mark.parametrize("after", range(9))
def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch, after):
    settings = small(tmp_path)
    run = Run.start(tmp_path / "run", settings)
    losses(run, 2)
    run.save()
    kept = run.trainer.weights["output.logits.weight"].copy()
    wanted = losses(run, 2)
    calls = iter(range(after))
    flush = os.fsync

    def full(descriptor: int) -> None:
        if next(calls, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    try:
        run.save()
    except InputError as refused:
        message = str(refused)
        assert "No space left on device" in message
        assert "that of step 2 is whole" in message
        assert "\n" not in message
    monkeypatch.undo()
    run.close()
    assert not list((tmp_path / "run").rglob(".0*"))
    again = Run.resume(tmp_path / "run", {})
    if again.trainer.step == 2:
        assert np.array_equal(again.trainer.weights["output.logits.weight"], kept)
        assert losses(again, 2) == wanted
    assert again.trainer.step == 4


def test_what_was_unfinished_is_removed_and_the_top_is_made_the_newest(tmp_path):
    run = Run.start(tmp_path / "run", small(tmp_path))
    losses(run, 2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run_module, "publish", lambda *_: None)  # killed right before
        run.save()
    run.close()
    unfinished = tmp_path / "run" / "checkpoints" / ".000004.0123abcd"
    unfinished.mkdir()
    (unfinished / "config.json").write_text("{")
    (tmp_path / "run" / ".model.safetensors.0123abcd").write_bytes(b"half")
    again = Run.resume(tmp_path / "run", {})
    assert again.trainer.step == 2
    assert not unfinished.exists()
    stored = load_file(tmp_path / "run" / "model.safetensors")
    assert np.array_equal(stored["output.logits.weight"], again.trainer.weights["output.logits.weight"])
    assert not list((tmp_path / "run").glob(".model*"))
    # hidden files of the user stay
    again.close()
    kept = [tmp_path / "run" / ".git" / "HEAD", tmp_path / "run" / "checkpoints" / ".note", tmp_path / "run" / ".env"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    Run.resume(tmp_path / "run", {}).close()
    assert [path.read_text() for path in kept] == ["mine"] * 3


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(tmp_path):
    settings = small(tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "save", lambda _: None)
        Run.start(tmp_path / "run", settings).close()
    again = Run.resume(tmp_path / "run", {})
    assert again.trainer.step == 0
    assert losses(again, 8) == losses(Run.start(tmp_path / "whole", settings), 8)


def test_a_run_is_begun_in_no_other_and_in_no_folder_that_cannot_be(tmp_path):
    settings = small(tmp_path)
    run = Run.start(tmp_path / "run", settings)
    # two trainings do not write into one folder
    refuses("another training is writing there", lambda: Run.resume(tmp_path / "run", {}))
    run.close()
    Run.resume(tmp_path / "run", {}).close()
    # nor over another
    refuses(r"holds a run \(step 0\): go on with --resume", lambda: Run.start(tmp_path / "run", settings))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    refuses("is not empty: choose another", lambda: Run.start(tmp_path / "full", settings))
    refuses("no folder", lambda: Run.start(Path(settings.file), settings))
    refuses(r"next-character\.txt", lambda: Run.start(Path(settings.file) / "run", settings))
    for name in ("a" * 300, "a\0b"):
        refuses(r"cannot be|no folder", lambda name=name: Run.start(tmp_path / name, settings))


def test_a_run_can_be_made_longer_and_has_else_the_settings_and_the_text_that_it_had(tmp_path):
    settings = small(tmp_path, weight_decay=0.5)
    assert type(settings).from_json(dataclasses.asdict(settings)) == settings
    Run.start(tmp_path / "run", settings).close()
    for given, says in (
        ({"batch": 5}, "--batch 5: the run has 4"),
        ({"sizes": {"d_model": 32}}, "--d-model 32: the run has 16"),
        ({"seed": 3}, "--seed 3: the run has 0"),
        ({"vocab": "english"}, "--vocab english: the run was begun without it: leave it out"),
    ):
        refuses(says, lambda given=given: Run.resume(tmp_path / "run", given))
    given = {"steps": 20, "batch": 4, "file": settings.file, "sizes": {"d_model": 16}}
    longer = Run.resume(tmp_path / "run", given)
    assert longer.trainer.settings.steps == 20
    log = Log(tmp_path / "log.csv", 0)
    for _ in range(3):
        longer.step(log, lambda *_: None)
    longer.save()
    log.close()
    longer.close()
    Run.resume(tmp_path / "run", {"steps": 2}).close()  # which are made: nothing is done, and nothing changed
    assert read_settings(tmp_path / "run")[0].steps == 20
    moved = Path(settings.file).rename(tmp_path / "moved.txt")
    with pytest.raises(
        InputError, match=r"next-character\.txt, the text of this run, is not there any more: put it back"
    ):
        Run.resume(tmp_path / "run", {})
    Run.resume(tmp_path / "run", {"file": str(moved), "steps": 30}).close()
    assert read_settings(tmp_path / "run")[0].file == str(moved)
    with moved.open("a") as file:
        file.write("more\n")
    refuses("is not the text that the run began with", lambda: Run.resume(tmp_path / "run", {}))


DAMAGED = {
    RUN: (
        "",
        "{}",
        '{"settings": 3, "text": ""}',
        '{"settings": [], "text": ""}',
        '{"settings": {"steps": 0}, "text": ""}',
        '{"settings": {"task": "next-word", "file": 5}, "text": ""}',
        '{"settings": {"task": "next-word", "file": "a", "sizes": 5}, "text": ""}',
        '{"settings": {"task": ["next-word"], "file": "a"}, "text": ""}',
    ),
    **dict.fromkeys((STATE, ARRAYS, "model.safetensors"), ("{",)),
}


def test_damaged_files_are_one_line(tmp_path):
    run = tmp_path / "run"
    Run.start(run, small(tmp_path)).close()
    newest = run / "checkpoints" / "000000"

    def refused(name: str, text: str) -> str:
        path = run / name if name == RUN else newest / name
        whole = path.read_bytes()
        path.write_text(text)
        said = refuses(re.escape(name), lambda: Run.resume(run, {}))
        path.write_bytes(whole)
        return said

    for name, texts in DAMAGED.items():
        for text in texts:
            refused(name, text)
    for step in ("-1", "1e999", '"x"', "null", "5"):
        assert "state.json: not the state of step 0" in refused(STATE, f'{{"step": {step}, "learning_rate": 1}}')
    Run.resume(run, {}).close()


# Broken files of a run: settings, states and logs, each read or refused in one line that names the file
@pytest.fixture
def run(tmp_path) -> Path:
    """The folder of a run that can be resumed."""
    started = Run.start(tmp_path / "run", small(tmp_path))
    started.trainer.advance()
    started.save()
    started.close()
    return tmp_path / "run"


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
        read_or_refused(lambda: Run.resume(run, {}).close(), *files, Path("--"))  # a setting is named as its option is
        answers_first(run)

    documents = damaged(whole) if name == ARRAYS else broken_json(json.loads(whole))
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
