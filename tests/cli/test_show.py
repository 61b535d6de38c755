from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from command_line import Run

from tui_transformer import __version__
from tui_transformer.model import Model

USUAL = ("--model", "encoder")

SENTENCE = "The waves crashed forcefully against the shore!"
SCORES = "encoder.0.self_attention.scores"
WEIGHTS = "encoder.0.self_attention.weights"


def _values(name: str) -> np.ndarray:
    return Model.load("encoder").trace(SENTENCE)[name]


def test_without_a_step_all_steps_are_listed_with_shape_and_formula(run: Run) -> None:
    lines = run("show").out.splitlines()
    names = Model.load("encoder").program(8).names
    assert [line.split()[0] for line in lines[: len(names)]] == list(names)
    assert any(line.startswith(SCORES) and "8 × 8 × 8" in line and "Q Kᵀ" in line for line in lines)
    assert any(line.startswith("encoder.0.output") and "= encoder.0.feed_forward.norm" in line for line in lines)


def test_the_list_as_json_and_csv_has_the_weights_too(run: Run) -> None:
    listed = {entry["name"]: entry for entry in json.loads(run("show", "--format", "json").out)}
    assert listed[SCORES] == {"name": SCORES, "kind": "step", "shape": [8, 8, 8], "formula": "Q Kᵀ"}
    assert listed["embedding.tokens.weight"]["kind"] == "weight"
    table = list(csv.DictReader(io.StringIO(run("show", "--format", "csv").out)))
    assert [row["name"] for row in table] == list(listed)


@pytest.mark.parametrize("step", [SCORES, "scores", "self_attention.scores", "*.scores", "encoder.?.*.scores"])
def test_a_step_is_found_by_name_end_or_pattern(run: Run, step: str) -> None:
    ended = run("show", step)
    assert ended.code == 0
    assert ended.out.startswith(f"{SCORES} · 8 × 8 × 8 · head 0 of 0 to 7\nQ Kᵀ\n")
    assert ended.err == ""


def test_a_pattern_shows_every_step_that_matches(run: Run) -> None:
    out = run("show", "encoder.0.self_attention.[qk]*").out
    assert out.count(" · 8 × 8 × 1 · ") == 2


def test_text_shows_words_and_numbers_within_80_columns(run: Run) -> None:
    out = run("show", "weights", "--head", "2").out
    assert max(map(len, out.splitlines())) <= 80
    row = next(line for line in out.splitlines() if line.startswith("4 against"))
    shown = [float(text) for text in row.split()[2:]]
    np.testing.assert_allclose(shown, _values(WEIGHTS)[2, 4], atol=5e-5)


def test_a_wide_matrix_is_cut_and_all_shows_it(run: Run) -> None:
    cut = run("show", "hidden").out
    assert max(map(len, cut.splitlines())) <= 80
    assert "of 128 columns" in cut
    whole = run("show", "hidden", "--all").out
    assert "…" not in whole.splitlines()[-1]
    last = next(line for line in whole.splitlines() if line.startswith("7 !"))
    assert float(last.split()[-1]) == pytest.approx(_values("encoder.0.feed_forward.hidden")[7, 127], abs=5e-5)


def test_json_reads_back_as_the_same_values(run: Run) -> None:
    read = json.loads(run("show", "weights", "--head", "3", "--format", "json").out)
    assert read["name"] == WEIGHTS
    assert read["shape"] == [8, 8, 8]
    assert read["rows"]["labels"][1] == "waves"
    np.testing.assert_array_equal(np.array(read["values"], dtype=np.float32), _values(WEIGHTS)[3])


def test_masked_cells_are_null_in_json(run: Run) -> None:
    out = run("show", "masked", "--model", "decoder", "--format", "json").out
    values = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["values"]
    assert [value is None for value in values[1]] == [False, False] + [True] * 6


def test_csv_reads_back_as_the_same_values(run: Run) -> None:
    table = list(csv.reader(io.StringIO(run("show", "hidden", "--format", "csv", "--dtype", "float64").out)))
    assert table[0][:3] == ["", "0", "1"]
    assert [row[0] for row in table[1:3]] == ["the @0", "waves"]
    expected = Model.load("encoder", dtype="float64").trace(SENTENCE)["encoder.0.feed_forward.hidden"]
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float64), expected)


def test_a_weight_can_be_shown(run: Run) -> None:
    table = list(csv.reader(io.StringIO(run("show", "embedding.tokens.weight", "--format", "csv").out)))
    assert [row[0] for row in table[1:3]] == ["[UNK]", "the"]


@pytest.mark.parametrize("suffix", ["txt", "json", "csv", "dat", "svg", "npz"])
def test_a_file_gets_the_format_of_its_name(run: Run, tmp_path: Path, suffix: str) -> None:
    ended = run("show", "weights", "--head", "1", "--out", f"a.{suffix}")
    assert (ended.code, ended.out, ended.err) == (0, "", f"wrote a.{suffix}\n")
    data = (tmp_path / f"a.{suffix}").read_bytes()
    if suffix == "npz":
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            np.testing.assert_array_equal(archive[WEIGHTS], _values(WEIGHTS)[1])
    elif suffix == "svg":
        assert ElementTree.fromstring(data).tag.endswith("svg")  # noqa: S314 - our own file
    else:
        assert ("query" if suffix == "dat" else "waves") in data.decode()


def test_explain_gives_the_terms_and_both_values(run: Run) -> None:
    out = run("show", "self_attention.output", "--explain", "4,1").out
    assert out.startswith("encoder.0.self_attention.output[4, 1] · token against\nconcat W_O\n")
    assert "a = encoder.0.self_attention.concat[4, k]" in out
    assert "b = encoder.0.self_attention.output.weight[k, 1]" in out
    value = float(_values("encoder.0.self_attention.output")[4, 1])
    read = {line.split()[0]: line.split()[1] for line in out.splitlines() if line.strip()}
    assert float(read["stored"]) == pytest.approx(value, rel=1e-8)
    assert float(read["recomputed"]) == pytest.approx(value, abs=1e-6)


def test_explain_as_json_adds_up(run: Run) -> None:
    read = json.loads(run("show", "scores", "--head", "2", "--explain", "4,1", "--format", "json").out)
    (total,) = read["items"]
    term = total["terms"][0]
    assert term["operands"][0]["index"] == [2, 4, 0]
    assert term["adds"] == pytest.approx(term["operands"][0]["value"] * term["operands"][1]["value"])
    assert read["recomputed"] == pytest.approx(total["total"])


@pytest.mark.parametrize("cell", ["8,0", "0,8", "9,9"])
def test_a_cell_that_is_not_there_is_told_which_are(run: Run, cell: str) -> None:
    ended = run("show", "weights", "--explain", cell)
    assert (ended.code, ended.out) == (1, "")
    assert f"{WEIGHTS} has no cell {cell}: its cells are 0,0 to 7,7" in ended.err


def test_ids_show_the_words_of_the_vocabulary(run: Run) -> None:
    assert "0 shore" in run("show", "tokens", "--ids", "6 1,0").out


def test_a_sentence_that_is_cut_is_said(run: Run) -> None:
    ended = run("show", "tokens", "--max-length", "4", "--cut", "--format", "csv")
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 5
    assert "4 are left out" in ended.err


def test_sizes_and_choices_reach_the_model(run: Run) -> None:
    arguments = ("--layers", "2", "--d-model", "16", "--heads", "4", "--norm", "pre", "--bias", "--causal")
    out = run("show", *arguments).out
    assert "encoder.1.self_attention.scores" in out
    assert "encoder.0.self_attention.query.bias" in out
    assert "encoder.norm" in out
    assert "after the query" in out


def test_the_version_is_printed(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.out) == (0, f"tui-transformer {__version__}\n")


def test_a_query_without_a_visible_key_has_a_weight_of_0_and_says_so(run: Run) -> None:
    out = run("show", WEIGHTS, "--model", "question", "--ids", "0,0", "--explain", "1,1").out
    assert re.search(r"Σ e\^s +0  no key is visible", out)
    assert re.search(r"weight +0  not 0 ÷ 0 but 0", out)
    assert "stored      0\n" in out


def test_the_matrices_of_all_heads_stand_below_each_other(run: Run) -> None:
    arguments = ("--model", "encoder", "--d-model", "64", "--text", "the waves crashed")
    out = run("show", "weights", "--head", "all", *arguments).out
    alone = [run("show", "weights", "--head", str(head), *arguments).out for head in range(8)]
    assert out == "\n".join(alone)
    assert len({text.split("\n")[-2] for text in alone}) == 8
    assert run("show", "tokens", "--head", "all", *arguments).out == run("show", "tokens", *arguments).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--head", "all", "--format", "csv"), "--format csv takes one matrix, and 8 match: name one head"),
        (("--head", "all", "--explain", "0,0"), "--explain takes one matrix, and 8 match"),
        (("--head", "both"), "--head: 'both' is no head: write a number from 0, or all"),
    ],
)
def test_what_all_heads_cannot_be(run: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = run("show", "encoder.0.self_attention.weights", *arguments)
    assert (ended.code, says in ended.err) == (2, True), ended.err


# Charts


QUESTION = ("--model", "question")


def test_a_chart_is_text_with_all_curves_named(run):
    ended = run("chart", "embedding.positions", "--kind", "sines", *QUESTION)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[1].split("   ")[:3] == ["* sin 0", "+ sin 2", "o sin 4"]
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in ended.out
    assert "50" in lines[-2]


def test_a_row_is_that_of_the_cell(run):
    out = run("chart", "weights", "--head", "2", "--cell", "0,8", *QUESTION).out
    assert "▸" in next(line for line in out.splitlines() if "?" in line)
    assert "query where @0" in out


def test_a_chart_is_written_as_a_figure(run, tmp_path):
    path = tmp_path / "distance.svg"
    ended = run("chart", "embedding.positions", "--kind", "positions-by-distance", "--out", str(path), *QUESTION)
    assert ended.code == 0
    assert "PE·PEᵀ by distance" in path.read_text()
    ET.fromstring(path.read_text())  # noqa: S314 - of our own figures
    assert run("chart", "weights", "--format", "svg", *QUESTION).out.startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("chart", "tokens"), "has no chart"),
        (("chart", "weights", "--kind", "pie"), "use row, entropy, relative entropy, histogram"),
        (("chart", "nothing"), "no step is called"),
        (("chart", "weights", "--cell", "99,0"), "has no cell 99,0"),
        (("chart", "weights", "--cell", "x"), "--cell: 'x' is not a cell"),
        (("chart", "weights", "--head", "9"), "no head 9"),
        (("chart", "weights", "--out", "chart.png"), "has to end in .svg, .txt"),
        (("chart", "embedding.*"), "a chart is of one step"),
    ],
)
def test_what_cannot_be_drawn_is_said(run, arguments, says):
    ended = run(*arguments, *QUESTION)
    assert ended.code in (1, 2)
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1
