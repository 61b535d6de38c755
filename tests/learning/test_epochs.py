"""Loss and share of right answers of whole epochs, in the log beside those of the steps."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tui_transformer.errors import InputError
from tui_transformer.learning.log import COLUMNS, Epoch, Epochs, Log
from tui_transformer.learning.loop import Record

RECORD = Record(1, 0.0, 0.0, 0.0, 0.1, 1.0, {}, 10, 1.0)
STEPS = [replace(RECORD, step=i, epoch=i / 3, loss=6.0 - i, accuracy=i / 10) for i in range(1, 8)]


def test_an_epoch_has_the_means_of_its_steps() -> None:
    epochs = Epochs()
    ended = [epochs.add(step.epoch, step.loss, step.accuracy) for step in STEPS]
    assert [epoch for epoch in ended if epoch] == [Epoch(1, 4.0, pytest.approx(0.2)), Epoch(2, 1.0, pytest.approx(0.5))]
    assert [place for place, epoch in enumerate(ended) if epoch] == [2, 5]


def test_a_step_of_several_epochs_ends_the_last_of_them() -> None:
    assert Epochs().add(2.5, 1.0, 0.5) == Epoch(2, 1.0, 0.5)


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_the_log_has_them_where_an_epoch_ends_also_after_it_was_resumed(name: str, tmp_path: Path) -> None:
    whole, resumed = tmp_path / name, tmp_path / f"resumed-{name}"
    log = Log(whole, 0)
    for step in STEPS:
        log.write(step, None)
    log.close()
    log = Log(resumed, 0)
    for step in STEPS[:4]:
        log.write(step, None)
    log.close()
    log = Log(resumed, 4)
    for step in STEPS[4:]:
        log.write(step, None)
    log.close()
    assert resumed.read_bytes() == whole.read_bytes()
    with whole.open() as file:
        rows = list(csv.DictReader(file)) if name.endswith("csv") else [json.loads(line) for line in file]
    assert [row["epoch_loss"] for row in rows if row["epoch_loss"]] in ([4.0, 1.0], ["4.0", "1.0"])
    assert set(COLUMNS) <= set(rows[0])


def test_a_line_without_its_epoch_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n')
    with pytest.raises(InputError, match="is no log of a run"):
        Log(path, 1)
