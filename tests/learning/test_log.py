"""The log of a run, and its epochs."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import resource
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from refusing import refuses

from tui_transformer.errors import InputError, UsageError
from tui_transformer.learning.log import COLUMNS, FORMATS, Epoch, Epochs, Log, check_new
from tui_transformer.learning.loop import Measured, Record


# The log of a run
def record(step: int) -> Record:
    return Record(step, 0.5, 2.0 / 3.0, 0.25, 1e-3, 1.5, {"decoder.0": 1.5}, 100, 0.5)


def write(path: Path, records: Iterable[Record], after: int = 0, measured: Measured | None = None) -> str:
    """Write some steps into a log, which then has this text; the last is measured."""
    log, written = Log(path, after), list(records)
    for each in written:
        log.write(each, measured if each is written[-1] else None)
    log.close()
    return path.read_text()


def test_csv_has_a_head_and_a_line_a_step_and_json_the_norms_of_the_layers(tmp_path):
    text = write(tmp_path / "log.csv", map(record, (1, 2)), measured=Measured(1.0, 0.5, 10))
    first, second = csv.DictReader(text.splitlines())
    assert float(first["loss"]) == 2.0 / 3.0
    assert (first["step"], first["tokens_per_second"], first["validation_loss"]) == ("1", "200.0", "")
    assert (second["validation_accuracy"], second["validation_perplexity"]) == ("0.5", "2.718281828459045")
    line = json.loads(write(tmp_path / "log.jsonl", [record(1)]))
    assert line["norms"] == {"decoder.0": 1.5}
    assert line["validation_loss"] is None


@pytest.mark.parametrize(("loss", "loss_in_json"), [(1e14, 1e14), (math.nan, None)])
def test_of_a_validation_that_diverged_every_reader_of_json_reads_the_line(tmp_path, loss, loss_in_json):
    lines = [write(tmp_path / f"log{suffix}", [record(1)], measured=Measured(loss, 0.5, 10)) for suffix in FORMATS]
    (row,) = csv.DictReader(lines[0].splitlines())
    assert row["validation_perplexity"] == ("nan" if loss_in_json is None else "inf")
    line = json.loads(lines[1], parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (line["validation_loss"], line["validation_perplexity"]) == (loss_in_json, None)


@pytest.mark.parametrize("step", [0, 5])
def test_a_file_that_is_no_log_stays_whatever_was_made(tmp_path: Path, step: int) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("name,age\nAda,36\n")
    refuses("is no log of a run", lambda: Log(path, step))
    assert path.read_text() == "name,age\nAda,36\n"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_lines_after_the_checkpoint_and_half_lines_are_removed(tmp_path, suffix):
    path, whole = tmp_path / f"log{suffix}", tmp_path / f"whole{suffix}"
    for target, last in ((path, 5), (whole, 3)):
        write(target, map(record, range(1, last + 1)))
    with path.open("a") as file:
        file.write('{"step": 6, "lo' if suffix == ".jsonl" else "6,0.5")
    Log(path, 3).close()
    assert path.read_text() == whole.read_text()


def test_a_new_run_writes_over_no_file_and_after_no_log(tmp_path):
    path = tmp_path / "log.csv"
    check_new(path)
    path.write_text("mine")
    refuses("exists: remove it", lambda: check_new(path))
    refuses(r"ends in \.csv or \.jsonl", lambda: check_new(tmp_path / "log.txt"), UsageError)
    # a line without its epoch is none
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n')
    refuses("is no log of a run", lambda: Log(tmp_path / "log.jsonl", 1))


@contextlib.contextmanager
def at_most(size: int) -> Iterator[None]:
    """No file may grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_line_for_which_there_is_no_room_comes_with_the_next(tmp_path, suffix):
    path, whole = tmp_path / f"log{suffix}", tmp_path / f"whole{suffix}"
    log = Log(path, 0)
    log.write(record(1), None)
    before = path.read_bytes()
    with at_most(len(before) + 10), pytest.raises(InputError, match=r"log\S+: cannot be written: File too large"):
        log.write(record(2), None)
    assert path.read_bytes() == before
    log.write(record(3), None)
    log.close()
    assert path.read_text() == write(whole, map(record, (1, 2, 3)))


# Loss and share of right answers of whole epochs, in the log beside those of the steps
RECORD = Record(1, 0.0, 0.0, 0.0, 0.1, 1.0, {}, 10, 1.0)
STEPS = [replace(RECORD, step=i, epoch=i / 3, loss=6.0 - i, accuracy=i / 10) for i in range(1, 8)]


def test_an_epoch_has_the_means_of_its_steps() -> None:
    epochs = Epochs()
    ended = [epochs.add(step.step, step.epoch, step.loss, step.accuracy) for step in STEPS]
    assert [epoch for epoch in ended if epoch] == [Epoch(1, 4.0, pytest.approx(0.2)), Epoch(2, 1.0, pytest.approx(0.5))]
    assert [place for place, epoch in enumerate(ended) if epoch] == [2, 5]
    # a step of several ends the last of them
    assert Epochs().add(1, 2.5, 1.0, 0.5) == Epoch(2, 1.0, 0.5)


@pytest.mark.parametrize(("first", "known"), [(2, {2: 1.0}), (3, {2: 1.0}), (4, {2: 1.0}), (5, {}), (6, {})])
def test_an_epoch_has_no_means_where_a_log_begins_within_it(first, known, tmp_path):
    log, told = Log(tmp_path / "log.csv", first - 1), dict[int, float]()
    for step in STEPS[first - 1 :]:
        log.write(step, None)
        told |= {log.epoch.number: log.epoch.loss} if log.epoch is not None else {}
    log.close()
    assert told == known


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_the_log_has_them_where_an_epoch_ends_also_after_it_was_resumed(name: str, tmp_path: Path) -> None:
    whole, resumed = tmp_path / name, tmp_path / f"resumed-{name}"
    write(resumed, STEPS[:4])
    assert write(resumed, STEPS[4:], after=4) == write(whole, STEPS)
    with whole.open() as file:
        rows = list(csv.DictReader(file)) if name.endswith("csv") else [json.loads(line) for line in file]
    assert [row["epoch_loss"] for row in rows if row["epoch_loss"]] in ([4.0, 1.0], ["4.0", "1.0"])
    assert set(COLUMNS) <= set(rows[0])
