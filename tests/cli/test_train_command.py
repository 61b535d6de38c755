"""The command `train`: what it tells, how it ends, and that a run that is killed goes on as if nothing had happened."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from command_line import Ended, Run

from tui_transformer.cli.train import Progress, Train
from tui_transformer.features.dictionary import own_dictionary
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.loop import Measured, Record, Trainer
from tui_transformer.learning.optimizers import OPTIMIZERS, SCHEDULES
from tui_transformer.learning.settings import UNITS
from tui_transformer.learning.tasks import TASKS
from tui_transformer.model import Model

COMMAND = (sys.executable, "-m", "tui_transformer", "train")
SMALL = ("--d-model", "16", "--heads", "2", "--layers", "1", "--batch", "4", "--length", "16", "--device", "cpu")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in lines_of("story", 60)), encoding="utf-8")
    return path


def logged(path: Path) -> list[dict[str, str]]:
    """The lines of a log without the speed."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: value for name, value in row.items() if name != "tokens_per_second"} for row in rows]


def test_a_run_tells_its_result_and_is_a_model(run: Run, text: Path, tmp_path: Path) -> None:
    options = ("--task", "next-word", "--out", "run", "--steps", "12", *SMALL)
    ended = run("train", str(text), *options, "--log", "log.jsonl", code=0)
    assert re.search(r"^steps +12$", ended.out, re.MULTILINE)
    assert re.search(r"^validation loss +\d+\.\d+$", ended.out, re.MULTILINE)
    assert re.search(r"^perplexity +\d", ended.out, re.MULTILINE)
    assert "a step takes up to" in ended.err
    assert "step 12 of 12" in ended.err
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 12
    assert "decoder.0" in json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])["norms"]
    assert Model.load(tmp_path / "run", device="cpu").encode("Once there was").ids
    run("show", "scores", "--model", "run", "--text", "Once there was", code=0)
    assert run("trace", "--out", "a.npz", "--model", "run/checkpoints/000000", "--text", "Once").code == 0


def test_a_run_goes_on_in_the_log_of_its_folder_and_with_its_text_where_that_is_now(run, text, tmp_path):
    options = (str(text), "--task", "next-word", "--out", "run", *SMALL, "--steps", "4")
    run("train", *options, code=0)
    (tmp_path / "run" / "log.jsonl").unlink()
    text.rename(tmp_path / "run" / "text.txt")
    log = tmp_path / "run" / "log.csv"
    assert "put it back, or resume with FILE" in run("train", "--out", "run", "--resume", "--steps", "6", code=1).err
    assert "no.txt cannot be read" in run("train", "no.txt", "--out", "run", "--resume", "--steps", "6", code=1).err
    again = ("train", "run/text.txt", "--out", "run", "--resume", "--steps")
    run(*again, "6", "--log", str(log), code=0)
    run(*again, "8", code=0)
    assert [row["step"] for row in logged(log)] == ["5", "6", "7", "8"]
    assert not (tmp_path / "run" / "log.jsonl").exists()


def test_the_log_of_a_new_run_may_be_in_its_folder(run: Run, text: Path, tmp_path: Path) -> None:
    options = ("train", str(text), "--task", "next-word", "--out", "run", *SMALL, "--steps", "2", "--log")
    assert "there is no folder other" in run(*options, "other/log.csv", code=1).err
    assert "a log is a file that ends in" in run(*options, "run/log.txt", code=2).err
    run(*options, "run/log.csv", code=0)
    assert len(logged(tmp_path / "run" / "log.csv")) == 2


def test_an_existing_run_is_resumed_and_never_begun_again(run: Run, text: Path, tmp_path: Path) -> None:
    options = ("--task", "next-word", "--out", "run", *SMALL)
    assert run("train", str(text), *options, "--steps", "2").code == 0
    assert "--resume" in run("train", str(text), *options, "--steps", "2", code=1).err
    assert "all 2 steps are made" in run("train", "--out", "run", "--resume").err
    assert "--batch 5: the run has 4" in run("train", "--out", "run", "--resume", "--batch", "5").err
    assert run("train", str(text), *options, "--steps", "4", "--resume").code == 0
    assert run("train", "--resume", "--out", "run", "--steps", "5").code == 0
    # the log that was given no place is in its folder
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("given", ["--tokens characters", "--vocab-size 20", "--split runs", "--case kept"])
@pytest.mark.parametrize("has", ["--model story", "--vocab english"])
def test_what_is_of_a_vocabulary_that_is_built_is_not_left_aside(run: Run, text: Path, given: str, has: str) -> None:
    ended = run("train", str(text), "--task", "next-word", "--out", "run", *has.split(), *given.split(), code=2)
    said = f"{given.split()[0]} is of a vocabulary that is built, and {has} has its own: leave it out"
    assert said in ended.err


def test_nan_stops_with_its_step_and_leaves_the_checkpoint(run: Run, text: Path, tmp_path: Path) -> None:
    options = ("--task", "next-word", "--out", "run", "--steps", "9", "--warm-up", "0", "--clip", "0", *SMALL)
    ended = run("train", str(text), *options, "--optimizer", "sgd", "--learning-rate", "100000", code=1)
    said = r"step \d+: the loss is \S+ NaN or infinity began in \S+, in layer (decoder|output)\S*: use"
    assert re.search(said, ended.err)
    assert Model.load(tmp_path / "run", device="cpu")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_go_on(run: Run, environment, text, tmp_path, number) -> None:
    options = (str(text), "--task", "next-character", "--steps", "30", *SMALL)
    assert run("train", *options, "--out", "whole", "--log", "whole.csv").code == 0
    arguments = [*COMMAND, *options, "--out", "my run", "--log", "log.csv"]
    with subprocess.Popen(arguments, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_for(tmp_path / "log.csv", 4)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.endswith("go on with: tui-transformer train --resume --out 'my run' --log log.csv")
    steps = len(logged(tmp_path / "log.csv"))
    assert f"after step {steps}," in last
    assert (tmp_path / "my run" / "checkpoints" / f"{steps:06d}" / "state.json").exists()
    assert run("train", "--resume", "--out", "my run", "--log", "log.csv").code == 0
    assert logged(tmp_path / "log.csv") == logged(tmp_path / "whole.csv")


def test_a_signal_while_the_last_step_is_made_has_nothing_to_go_on_with(run: Run, text, monkeypatch) -> None:
    validate = Trainer.validate

    def interrupted(trainer: Trainer) -> Measured | None:
        os.kill(os.getpid(), signal.SIGINT)
        return validate(trainer)

    monkeypatch.setattr(Trainer, "validate", interrupted)
    ended = run("train", str(text), "--task", "next-word", "--out", "run", "--steps", "2", *SMALL)
    assert ended.code == 128 + signal.SIGINT
    assert "go on with" not in ended.err
    assert "perplexity" in ended.out


def test_a_run_that_is_killed_again_and_again_has_the_losses_of_one_that_is_not(run, environment, text, tmp_path):
    options = (str(text), "--task", "next-character", "--steps", "16", "--save-every", "1", *SMALL)
    assert run("train", *options, "--out", "whole", "--log", "whole.csv").code == 0
    chance = random.Random(1)  # noqa: S311 - moments, nothing secret
    log, kills = tmp_path / "log.csv", 0
    resumed = (*options, "--out", "run", "--log", "log.csv", "--resume")
    for _ in range(60):
        command = [*COMMAND, *resumed]
        with subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            moment = len(logged(log)) if log.exists() else 0
            wait_for(log, moment + chance.randrange(3), process)
            time.sleep(chance.random() * 0.02)
            process.kill()
            kills += process.wait(timeout=60) == -signal.SIGKILL
        if kills == 2:
            break
    assert kills == 2
    assert run("train", *resumed).code == 0
    assert logged(log) == logged(tmp_path / "whole.csv")
    for name in ("model.safetensors", "checkpoints/000016/state.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def wait_for(path: Path, lines: int, process: subprocess.Popen[str] | None = None) -> None:
    """Until a file has so many lines besides the first, or the process has ended."""
    until = time.monotonic() + 60
    while not path.exists() or len(path.read_bytes().splitlines()) <= lines:
        assert time.monotonic() < until
        if process is not None and process.poll() is not None:
            return
        time.sleep(0.002)


def test_what_matters_most_is_within_80_columns() -> None:
    progress = Progress(steps=4000, first=0)
    record = Record(1006, 9.5, 0.0803, 1.0, 1e-3, 0.5, {}, 5917, 1.0)
    going, saved = (progress._line(record, measured)[:79] for measured in (None, Measured(2.7554, 0.25, 90)))
    for part in (" left", "5,917 tokens/s", "loss 0.0803", "accuracy 1.000"):
        assert part in going
    for part in ("step 1,006 of 4,000", "loss 0.0803", "validation loss 2.7554, accuracy 0.250"):
        assert part in saved


def test_the_choices_are_those_of_the_tables() -> None:
    def choices(name: str) -> set[str]:
        return {choice for part in get_args(get_type_hints(Train)[name]) for choice in get_args(part)}

    assert choices("task") == set(TASKS)
    assert choices("optimizer") == set(OPTIMIZERS)
    assert choices("schedule") == set(SCHEDULES)
    assert choices("tokens") == set(UNITS)


# A dictionary of features


def test_the_command_learns_one_and_tells_how_good_it_is(run: Run, tmp_path: Path):
    options = ("--recipe", "copy", "--at", "decoder.0.output", "--out", "d", "--device", "cpu")
    ended = run("train", "--features", "48", *options, "--active", "5", "--steps", "4", "--batch", "64", code=0)
    assert "48, 5 active at a token" in ended.out
    assert "step 4 of 4" in ended.err
    assert json.loads((tmp_path / "d/cfg.json").read_text())["k"] == 5
    assert "not empty" in run("train", "--features", "48", *options).err


def test_where_a_dictionary_cannot_be_written_nothing_is_learned(run: Run, tmp_path: Path, monkeypatch) -> None:
    text, step = tmp_path / "text.txt", ("--at", "decoder.0.output", "--steps", "2")
    text.write_text("".join(f"{line}\n" for line in lines_of("copy", 20)), encoding="utf-8")
    options = (str(text), "--model", "copy", "--features", "16", *step)
    assert re.search(r"2 steps of \d{3} rows", run("train", *options, "--out", "few", code=0).out)  # of no 1,024
    monkeypatch.setattr("tui_transformer.learning.dictionary.learn", pytest.fail)
    assert "cannot be made" in run("train", *options, "--out", "/proc/nowhere", code=1).err


def test_the_explorer_begins_with_the_features_of_a_dictionary(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(own_dictionary(Model.load("story", device="cpu").folder))

    def told(typed: str, *more: str) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{typed}\nquit\n"))
        return run("--model", "story", "--plain", *more)

    assert "decoder.1.output.features" in told(": decoder.1.output.features", "--features", folder).out
    out = told(": decoder.0.output.error", "--features", folder, "--at", "decoder.0.output").out
    assert "decoder.0.output.error" in out
    assert "nothing" in told("", "--features", folder, "--at", "nothing").err
    assert "--features" in told("", "--at", "decoder.0.output").err
