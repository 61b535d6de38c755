"""Results as files: what is written is read again, number for number."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.errors import InputError, UsageError
from tui_transformer.survey.results import Results, check_out, read_results, write_results

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
RESULTS = Results(ROWS, EXAMPLES)
HAS_ARROW = importlib.util.find_spec("pyarrow") is not None
ENDINGS = ["csv", "json", pytest.param("parquet", marks=pytest.mark.skipif(not HAS_ARROW, reason="needs pyarrow"))]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_again(tmp_path: Path, ending: str):
    out = tmp_path / f"survey.{ending}"
    check_out(out)
    written = write_results(out, RESULTS)
    assert out in written
    read = read_results(out)
    assert tuple(read.rows) == ROWS
    assert tuple(read.examples) == EXAMPLES


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_survey_without_examples(tmp_path: Path, ending: str):
    out = tmp_path / f"survey.{ending}"
    assert write_results(out, Results(ROWS, ())) == (out,)
    assert list(read_results(out).examples) == []


def test_no_examples_are_left_of_a_survey_before(tmp_path: Path):
    write_results(tmp_path / "a.csv", RESULTS)
    write_results(tmp_path / "a.csv", Results(ROWS, ()))
    assert list(read_results(tmp_path / "a.csv").examples) == []


def test_tables_are_plain(tmp_path: Path):
    write_results(tmp_path / "a.csv", RESULTS)
    lines = (tmp_path / "a.csv").read_text("utf-8").splitlines()
    assert lines[0] == "model,part,layer,head,neuron,measure,unit,mean,low,high,deviation,count,vocab,seed,dtype"
    assert lines[1] == "story,decoder self-attention,0,1,,first,,0.3333333333333333,0.1,,0.2,7,,,float32"
    assert (tmp_path / "a.examples.csv").exists()
    write_results(tmp_path / "a.json", RESULTS)
    assert json.loads((tmp_path / "a.json").read_bytes())["rows"][1]["layer"] is None


def test_a_file_that_says_nothing_of_words_seed_and_precision_is_read(tmp_path: Path):
    write_results(tmp_path / "a.csv", Results(ROWS[:1], ()))
    lines = (tmp_path / "a.csv").read_text("utf-8").replace(",vocab,seed,dtype", "").replace(",,,float32", "")
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
    ],
)
def test_another_file_is_refused(tmp_path: Path, name: str, data: bytes, said: str):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=said):
        read_results(tmp_path / name)


@pytest.mark.skipif(not HAS_ARROW, reason="needs pyarrow")
def test_a_broken_parquet_file_is_refused(tmp_path: Path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing")
    with pytest.raises(InputError, match="not the result of"):
        read_results(tmp_path / "a.parquet")


def test_where_results_cannot_go_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UsageError, match=r"ending .csv, .json, .parquet"):
        check_out(tmp_path / "a.txt")
    with pytest.raises(InputError, match="in a folder that is there"):
        check_out(tmp_path / "none" / "a.csv")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"Parquet needs pyarrow: pip install 'tui-transformer\[parquet\]'"):
        check_out(tmp_path / "a.parquet")
