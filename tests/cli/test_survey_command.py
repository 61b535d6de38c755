"""`survey`: many texts measured by one command, stopped and taken up, on processes and on Ray."""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import pty
import signal
import sys
import tty
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import Run

from tui_transformer.analysis.survey.sums import Counts
from tui_transformer.cli import terminal
from tui_transformer.cli.survey import _everywhere, how_far, parse_layers
from tui_transformer.cli.terminal import escape_pressed, stopping
from tui_transformer.cli.typer_layer import completed
from tui_transformer.errors import UsageError
from tui_transformer.survey import processes
from tui_transformer.survey.processes import in_process
from tui_transformer.survey.results import read_results
from tui_transformer.survey.running import Progress

TEXTS = "\n".join(f"The fox found {number} shells . The fox found a stone ." for number in range(40))


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "in_processes", lambda work, batches, count: in_process(work, batches))


@pytest.fixture
def corpus(run: Run) -> str:
    Path("corpus.txt").write_text(TEXTS, encoding="utf-8")
    return "corpus.txt"


def table(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_a_layer_head_and_measure(run: Run, corpus: str):
    ended = run("survey", corpus, "--model", "copy", "--measure", "induction,previous", "--out", "heads.csv", code=0)
    assert "40 texts" in ended.err
    rows = table("heads.csv")
    places = {(row["layer"], row["head"], row["measure"]) for row in rows}
    assert len(places) == len(rows)
    assert {row["measure"] for row in rows} == {"induction", "previous"}
    assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in rows)
    assert {row["count"] for row in rows} == {"40"}
    assert not Path("heads.csv.state").exists()


@pytest.mark.usefixtures("in_this_process")
def test_layers_top_and_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text": "The fox found a fox"}\n')))
    arguments = ("--model", "story", "--measure", "first", "--measure", "itself", "--layers", "0,2", "--top", "1")
    run("survey", "-", *arguments, "--out", "heads.json", code=0)
    results = read_results(Path("heads.json"))
    assert {row.layer for row in results.rows} == {0, 2}
    assert {row.measure for row in results.rows} == {"first", "itself"}
    assert {(example.rank, example.file, example.text) for example in results.examples} == {
        (1, "-", "The fox found a fox")
    }


@pytest.mark.usefixtures("in_this_process")
def test_measures_that_no_text_has_are_named_and_a_table_without_rows_is_not_written(run: Run, corpus: str):
    arguments = (corpus, "--model", "story", "--length", "2", "--out", "heads.csv", "--measure")
    err = run("survey", *arguments, "induction", code=1).err
    assert err.endswith("no text has a number for induction: texts are cut to --length 2\n")
    assert not Path("heads.csv").exists()
    assert not Path("heads.csv.state").exists()
    err = run("survey", *arguments, "induction,first", code=0).err
    assert err.endswith("no text has a number for induction: texts are cut to --length 2\n")
    assert {row["measure"] for row in table("heads.csv")} == {"first"}


@pytest.mark.usefixtures("in_this_process")
def test_words_that_the_vocabulary_does_not_know_are_counted_and_named(run: Run):
    lines = ["where did Zorro hide the xylophone ?", "where did the map hide ?", "where is Zorro ?"]
    Path("texts.txt").write_text("\n".join(lines), encoding="utf-8")
    err = run("survey", "texts.txt", "--model", "question", "--measure", "first", "--out", "heads.csv").err
    assert err.endswith("3 of the tokens are not in the vocabulary of question: Zorro, xylophone\n")


@pytest.mark.usefixtures("in_this_process")
def test_ablations_are_measured_by_a_metric(run: Run):
    Path("texts.txt").write_text("The fox found a shell .\nA crow\n", encoding="utf-8")
    command = ("survey", "texts.txt", "--model", "story", "--measure", "ablation", "--layers", "1")
    assert run(*command, "--out", "loss.csv", "--metric", "loss").code == 0
    assert {(row["measure"], row["unit"], row["count"]) for row in table("loss.csv")} == {
        ("ablation:loss", "nats", "2")
    }
    assert run(*command, "--out", "difference.csv", "--tokens", " the, a").code == 0
    assert {(row["measure"], row["unit"]) for row in table("difference.csv")} == {("ablation:difference", "")}


@pytest.mark.usefixtures("in_this_process")
def test_esc_and_signals_keep_what_is_done_and_the_command_goes_on(run: Run, corpus: str, monkeypatch):
    command = ("survey", corpus, "--model", "story", "--out", "heads.csv")
    assert run(*command).code == 0
    whole = Path("heads.csv").read_bytes()
    examples = Path("heads.examples.csv").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(terminal, "escape", lambda **_: nullcontext(lambda: True))
        ended = run(*command)
    assert ended.code == 130
    assert "stopped after 16 texts, which heads.csv.state holds: the same command goes on" in ended.err
    assert {row["count"] for row in table("heads.csv")} <= {"16"}
    assert "goes on with what heads.csv.state holds" in run(*command, code=0).err
    assert (Path("heads.csv").read_bytes(), Path("heads.examples.csv").read_bytes()) == (whole, examples)
    assert not Path("heads.csv.state").exists()


@pytest.mark.usefixtures("in_this_process")
def test_what_is_stopped_before_anything_is_done_keeps_nothing(run: Run, corpus: str, monkeypatch):
    monkeypatch.setattr(terminal, "escape", lambda **_: nullcontext(lambda: True))
    monkeypatch.setattr(processes, "in_processes", lambda *_, **__: iter([None]))
    ended = run("survey", corpus, "--model", "story", "--out", "heads.csv", code=130)
    assert ended.err.endswith("stopped before the first texts were measured: nothing is kept\n")
    assert not list(Path().glob("heads*"))


def test_ray_that_is_not_installed_is_said(run: Run, corpus: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    ended = run("survey", "--ray", corpus, "--model", "story", "--out", "a.csv", code=1)
    assert "ray needs Ray: pip install 'tui-transformer[ray]'" in ended.err


def test_the_address_of_ray_may_be_left_out():
    for given, expected in (
        ("--ray", "--ray local"),
        ("--ray a.txt", "--ray local a.txt"),
        ("--ray --out a.csv", "--ray local --out a.csv"),
        ("--ray auto a.txt", "--ray auto a.txt"),
        ("--ray 10.0.0.1:6379", "--ray 10.0.0.1:6379"),
        ("--ray ray://head:10001", "--ray ray://head:10001"),
        ("-- --ray", "-- --ray"),
    ):
        assert completed(given.split(), {"--ray"}) == expected.split()


def test_layers_are_numbers_and_ranges_and_a_folder_is_named_from_the_root(tmp_path, monkeypatch):
    assert parse_layers("0, 3-5,4") == {0, 3, 4, 5}
    assert parse_layers(None) is None
    with pytest.raises(UsageError, match="'' is no layer"):
        parse_layers("1,")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "story").mkdir()
    assert _everywhere("models/mine") == str(tmp_path / "models" / "mine")
    assert [_everywhere(name) for name in ("story", "org/name")] == ["story", "org/name"]


def test_progress_says_texts_tokens_speed_and_share():
    now = Progress(Counts(120, 3_400), 20, 512)
    assert how_far(now, 1024, 10.0) == "120 texts · 3,400 tokens · 10.0 texts a second · 50 % read · esc stops"
    assert how_far(Progress(Counts(), 0, 0), None, 0.0) == "0 texts · 0 tokens · starting · esc stops"


@pytest.mark.parametrize(("keys", "expected"), [(b"\x1b", True), (b"\x1b[A", False), (b"q", False)])
def test_esc_alone_stops(monkeypatch, keys: bytes, expected: bool):
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())  # as on the terminal of the command
    main, typed = pty.openpty()
    try:
        tty.setcbreak(typed)
        assert not escape_pressed(typed)
        os.write(main, keys)
        assert escape_pressed(typed) == expected
    finally:
        os.close(main)
        os.close(typed)


def test_a_signal_is_remembered_and_the_second_is_as_usual():
    before = signal.getsignal(signal.SIGTERM)
    with stopping() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) == before
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")
def test_two_workers_of_ray_give_what_one_process_gives(run: Run, corpus: str):
    assert run("survey", corpus, "--model", "story", "--out", "one.csv").code == 0
    run("survey", corpus, "--model", "story", "--out", "ray.csv", "--ray", "--workers", "2", code=0)
    for name in ("", ".examples"):
        assert Path(f"ray{name}.csv").read_bytes() == Path(f"one{name}.csv").read_bytes()


@pytest.mark.usefixtures("in_this_process")
def test_the_explorer_begins_with_a_survey_on_its_model(run: Run, corpus: str, monkeypatch: pytest.MonkeyPatch):
    assert run("survey", corpus, "--model", "copy", "--measure", "first", "--out", "a.json").code == 0
    begun = []

    def explore(options, *_, survey, **__) -> int:
        begun.append((options.model, survey.rows[0].measure, options.seed, options.dtype, options.vocab))
        return 0

    monkeypatch.setattr("tui_transformer.explorer.run.run", explore)
    monkeypatch.setattr("tui_transformer.cli.explore.check_terminal", lambda: None)
    assert run("--survey", "a.json").code == 0
    assert run("--survey", "a.json", "--model", "story").code == 0
    given = ("--seed", "3", "--dtype", "float64", "--vocab", "dog")
    assert run("survey", corpus, "--model", "encoder", *given, "--measure", "first", "--out", "b.csv").code == 0
    assert run("--survey", "b.csv").code == 0
    assert run("--survey", "b.csv", "--dtype", "float64").code == 0
    copy, random = ("first", None, "float32", None), ("first", 3, "float64", "dog")
    assert begun == [("copy", *copy), ("story", *copy), ("encoder", *random), ("encoder", *random)]
    assert "--survey is a screen" in run("--survey", "a.json", "--plain").err
    assert "no such file" in run("--survey", "missing.json").err


@pytest.mark.usefixtures("in_this_process")
def test_features_of_a_dictionary_are_measured(run: Run, corpus: str):
    width, rng = 80, np.random.default_rng(0)
    encoder = rng.standard_normal((width, 12))
    arrays = {"b_enc": np.zeros(12), "b_dec": np.zeros(width), "threshold": np.full(12, 3.0)}
    np.savez("params.npz", W_enc=encoder, W_dec=encoder.T, **arrays)
    line = ("survey", corpus, "--model", "story", "--features", "params.npz", "--top", "1")
    run(*line, "--at", "1.output", "--out", "features.csv", code=0)
    rows = table("features.csv")
    assert {(row["part"], row["layer"], row["measure"]) for row in rows} == {
        ("decoder.1.output", "1", "features"),
        ("decoder.1.output", "1", "features:frequency"),
    }
    assert [row["feature"] for row in rows[:12]] == [str(number) for number in range(12)]
    examples = read_results(Path("features.csv")).examples
    assert {example.feature for example in examples} <= set(range(12))
    run(*line, "--out", "other.csv").refuses("does not say where it was trained", 1)
    run(*line, "--at", "0.output", "--measure", "first", "--out", "first.csv")
    assert {row["measure"] for row in table("first.csv")} == {"first"}
    lost = ("survey", corpus, "--at", "1.output", "--out", "other.csv")
    run(*lost).refuses("--at and --into are of a dictionary", 2)
