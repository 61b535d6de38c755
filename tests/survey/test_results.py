"""Results of surveys as files, and broken files."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, broken_json, damaged, hold, hold_file, read_or_refused
from refusing import refuses

from tui_transformer.analysis.survey.measures import Asked
from tui_transformer.analysis.survey.sums import Counts, Examples, Moments, Sums
from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.errors import InputError, UsageError
from tui_transformer.explorer.tools.survey import Survey, line
from tui_transformer.model.options import ModelOptions
from tui_transformer.survey.processes import in_process
from tui_transformer.survey.results import Results, check_out, examples_path, read_results, write_results
from tui_transformer.survey.running import Job, load_state, run, state_path
from tui_transformer.survey.work import Work

# Results as files: what is written is read again, number for number
ROWS = (
    Row("story", "decoder self-attention", 0, 1, None, "first", "", 1 / 3, 0.1, None, 0.2, 7),
    Row("a, b", "logit lens", None, None, None, "lens:depth", "layers", 2.5, None, None, None, 1),
    Row("encoder", "encoder feed-forward", 2, None, 17, "neurons", "", -1e-300, -2.0, 3.0, 0.0, 9, "a", 3, "float64"),
)
EXAMPLES = (
    Example(
        "story", "decoder self-attention", 0, 1, None, "first", 1, 0.1 + 0.2, "a.txt", 3, 5, 'a "text",\nof\r\ntwo é'
    ),
    Example("story", "decoder feed-forward", 2, None, 17, "neurons", 2, 5.0, "-", 9, 0, "=1+1 [red]"),
)
RESULTS = Results.of(ROWS, EXAMPLES)
NEEDS_ARROW = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
ENDINGS = ["csv", "json", pytest.param("parquet", marks=NEEDS_ARROW)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_again(tmp_path: Path, ending: str):
    out = tmp_path / f"survey.{ending}"
    check_out(out)
    written = write_results(out, RESULTS)
    assert out in written
    read = read_results(out)
    assert tuple(read.rows) == ROWS
    assert tuple(read.examples) == EXAMPLES
    # without examples, of which none are left of a survey before
    write_results(out, Results.of(ROWS, ()))
    assert list(read_results(out).examples) == []
    alone = tmp_path / f"alone.{ending}"
    assert write_results(alone, Results.of(ROWS, ())) == (alone,)
    assert list(read_results(alone).examples) == []


def test_tables_are_plain_and_may_say_nothing_of_words_seed_and_precision(tmp_path: Path):
    write_results(tmp_path / "a.csv", RESULTS)
    lines = (tmp_path / "a.csv").read_text("utf-8").splitlines()
    names = "model,part,layer,head,neuron,measure,unit,mean,low,high,deviation,count,vocab,seed,dtype,feature"
    assert lines[0] == names
    assert lines[1] == "story,decoder self-attention,0,1,,first,,0.3333333333333333,0.1,,0.2,7,,,float32,"
    assert (tmp_path / "a.examples.csv").exists()
    write_results(tmp_path / "a.json", RESULTS)
    assert json.loads((tmp_path / "a.json").read_bytes())["rows"][1]["layer"] is None
    write_results(tmp_path / "a.csv", Results.of(ROWS[:1], ()))
    lines = (tmp_path / "a.csv").read_text("utf-8").replace(",vocab,seed,dtype,feature", "").replace(",,,float32,", "")
    (tmp_path / "a.csv").write_text(lines, "utf-8")
    assert tuple(read_results(tmp_path / "a.csv").rows) == ROWS[:1]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", b"one,two\n1,2\n", "not the result of"),
        ("a.csv", b"", "there is no row"),
        ("a.csv", b"\xff\xfe\x00", "not the result of"),
        ("a.json", b"[1]", "not a JSON object"),
        ("a.json", b"{}", "not the result of"),
        ("a.json", b'{"rows": [{}], "examples": []}', "not the result of"),
        ("a.json", b"[" * 100_000, "not JSON"),
        ("a.txt", b"", "ends with .csv, .json, .parquet"),
        pytest.param("a.parquet", b"PAR1 and nothing", "not the result of", marks=NEEDS_ARROW),
    ],
)
def test_another_file_is_refused(tmp_path: Path, name: str, data: bytes, said: str):
    (tmp_path / name).write_bytes(data)
    refuses(said, lambda: read_results(tmp_path / name))


def test_where_results_cannot_go_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    refuses(r"ending .csv, .json, .parquet", lambda: check_out(tmp_path / "a.txt"), UsageError)
    refuses("in a folder that is there", lambda: check_out(tmp_path / "none" / "a.csv"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"Parquet needs pyarrow: pip install 'tui-transformer\[parquet\]'"):
        check_out(tmp_path / "a.parquet")


# Broken files of a survey: results and states, each read or refused in one line that names the file
PLACE = ("story", "decoder self-attention", 0, 1, None, "first")
WHOLE = Results.of(
    [Row(*PLACE, "bits", 0.5, 0.1, 0.9, 0.2, 7), Row(*PLACE[:3], 2, None, "first", "", -1e-300, None, None, None, 1)],
    [Example(*PLACE, 1, 0.25, "a.txt", 3, 5, "the fox\nfound a shell")],
)


def use(path: Path) -> None:
    """Read results; what is read can be shown."""
    results = read_results(path)
    for row in results.rows:
        assert row.mean is None or math.isfinite(row.mean)
    survey = Survey(results)
    for table in survey.tables:
        table.order(reverse=False)
        for row in table.rows:
            line(row, table.scale, 100, "")
            survey.examples(row)


@COUNTS
@pytest.mark.parametrize("ending", ENDINGS[::2])
def test_broken_tables(tmp_path, ending, count):
    path = tmp_path / f"survey.{ending}"
    write_results(path, WHOLE)
    examples_path(path).unlink()
    hold_file(count, path, damaged(path.read_bytes()), lambda: use(path))


@COUNTS
def test_broken_examples_beside_a_table(tmp_path, count):
    path = tmp_path / "survey.csv"
    write_results(path, WHOLE)
    examples = examples_path(path)
    hold_file(count, examples, damaged(examples.read_bytes()), lambda: use(path), path)
    os.truncate(examples, 3 << 30)
    refuses(r"survey\.examples\.csv: larger than", lambda: read_results(path))


@COUNTS
def test_broken_documents(tmp_path, count):
    path = tmp_path / "survey.json"
    whole = {name: [dataclasses.asdict(each) for each in getattr(WHOLE, name)] for name in ("rows", "examples")}
    hold_file(count, path, broken_json(whole), lambda: use(path))


@COUNTS
def test_broken_states(tmp_path, count):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The fox found a shell.\nOnce there was a crow.\n")
    job = Job(Work(ModelOptions("story", device="cpu"), Asked(("first",), top=2)), (str(corpus),), tmp_path / "a.csv")
    run(job, in_process)
    path = state_path(job.out)
    whole = path.read_bytes()
    assert load_state(path, job.settings) is not None
    path.write_bytes(b"x" + whole[1:])
    assert read_or_refused(lambda: load_state(path, job.settings), path) is None

    def check(data: bytes) -> None:
        path.write_bytes(data)
        state = read_or_refused(lambda: load_state(path, job.settings), path)
        assert (state is not None) == (data == whole)

    hold(count, check, data=damaged(whole))


def test_a_packed_state_is_refused_as_it_may_hold_any_number_of_cells(tmp_path):
    data = Sums(Counts(), (), Moments.of(np.zeros((0, 0))), Examples.none(0, 1), {}).to_bytes()
    assert Sums.from_bytes(data)[0].counts == Counts()
    packed = io.BytesIO()
    with np.load(io.BytesIO(data)) as arrays:
        np.savez_compressed(packed, **arrays)
    refuses("not the sums of a survey", lambda: Sums.from_bytes(packed.getvalue()), ValueError)
