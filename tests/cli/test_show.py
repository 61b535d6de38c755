"""`show`, `chart`, `poster` and `positions`: a step and the positions as text, numbers and figures."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import Run

from tui_transformer import __version__
from tui_transformer.analysis.positions import encoding
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
    # as JSON and CSV the list has the weights too
    listed = {entry["name"]: entry for entry in run("show", "--format", "json").json}
    assert listed[SCORES] == {"name": SCORES, "kind": "step", "shape": [8, 8, 8], "formula": "Q Kᵀ"}
    assert listed["embedding.tokens.weight"]["kind"] == "weight"
    table = run("show", "--format", "csv").table
    assert [row["name"] for row in table] == list(listed)


def test_a_step_is_found_by_name_end_or_pattern(run: Run) -> None:
    for step in (SCORES, "scores", "self_attention.scores", "*.scores", "encoder.?.*.scores"):
        ended = run("show", step, code=0)
        assert ended.out.startswith(f"{SCORES} · 8 × 8 × 8 · head 0 of 0 to 7\nQ Kᵀ\n")
        assert ended.err == ""
    out = run("show", "encoder.0.self_attention.[qk]*").out
    assert out.count(" · 8 × 8 × 1 · ") == 2


def test_text_shows_words_and_numbers_within_80_columns(run: Run) -> None:
    out = run("show", "weights", "--head", "2").out
    assert max(map(len, out.splitlines())) <= 80
    row = next(line for line in out.splitlines() if line.startswith("4 against"))
    shown = [float(text) for text in row.split()[2:]]
    np.testing.assert_allclose(shown, _values(WEIGHTS)[2, 4], atol=5e-5)
    # a wide matrix is cut, and --all shows it
    cut = run("show", "hidden").out
    assert max(map(len, cut.splitlines())) <= 80
    assert "of 128 columns" in cut
    whole = run("show", "hidden", "--all").out
    assert "…" not in whole.splitlines()[-1]
    last = next(line for line in whole.splitlines() if line.startswith("7 !"))
    assert float(last.split()[-1]) == pytest.approx(_values("encoder.0.feed_forward.hidden")[7, 127], abs=5e-5)


def test_json_and_csv_read_back_as_the_same_values(run: Run) -> None:
    read = run("show", "weights", "--head", "3", "--format", "json").json
    assert read["name"] == WEIGHTS
    assert read["shape"] == [8, 8, 8]
    assert read["rows"]["labels"][1] == "waves"
    np.testing.assert_array_equal(np.array(read["values"], dtype=np.float32), _values(WEIGHTS)[3])
    # masked cells are null
    out = run("show", "masked", "--model", "decoder", "--format", "json").out
    values = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["values"]
    assert [value is None for value in values[1]] == [False, False] + [True] * 6
    # CSV
    table = list(csv.reader(io.StringIO(run("show", "hidden", "--format", "csv", "--dtype", "float64").out)))
    assert table[0][:3] == ["", "0", "1"]
    assert [row[0] for row in table[1:3]] == ["the @0", "waves"]
    expected = Model.load("encoder", dtype="float64").trace(SENTENCE)["encoder.0.feed_forward.hidden"]
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float64), expected)
    # of a weight
    table = list(csv.reader(io.StringIO(run("show", "embedding.tokens.weight", "--format", "csv").out)))
    assert [row[0] for row in table[1:3]] == ["[UNK]", "the"]


def test_a_file_gets_the_format_of_its_name(run: Run, tmp_path: Path) -> None:
    for suffix in ("txt", "json", "csv", "dat", "svg", "npz"):
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


def test_a_list_or_a_cell_in_a_file_has_the_format_of_its_name(run: Run, tmp_path: Path) -> None:
    for name in ("cell.json", "cell.dat"):
        ended = run("show", "scores", "--explain", "4,1", "--out", name)
        assert ended.code == (0 if name == "cell.json" else 2)
    assert json.loads((tmp_path / "cell.json").read_text(encoding="utf-8"))["index"] == [0, 4, 1]
    assert run("show", "scores", "--explain", "4,1", "--format", "dat").code == 2
    run("show", "--out", "steps.csv", code=0)
    assert (tmp_path / "steps.csv").read_text(encoding="utf-8").startswith("name,kind,shape,formula")
    assert run("show", "--format", "dat").code == 2


def test_explain_gives_the_terms_and_both_values(run: Run) -> None:
    out = run("show", "self_attention.output", "--explain", "4,1").out
    assert out.startswith("encoder.0.self_attention.output[4, 1] · token against\nconcat W_O\n")
    assert "a = encoder.0.self_attention.concat[4, k]" in out
    assert "b = encoder.0.self_attention.output.weight[k, 1]" in out
    value = float(_values("encoder.0.self_attention.output")[4, 1])
    read = {line.split()[0]: line.split()[1] for line in out.splitlines() if line.strip()}
    assert float(read["stored"]) == pytest.approx(value, rel=1e-8)
    assert float(read["recomputed"]) == pytest.approx(value, abs=1e-6)
    # as JSON it adds up
    read = run("show", "scores", "--head", "2", "--explain", "4,1", "--format", "json").json
    (total,) = read["items"]
    term = total["terms"][0]
    assert term["operands"][0]["index"] == [2, 4, 0]
    assert term["adds"] == pytest.approx(term["operands"][0]["value"] * term["operands"][1]["value"])
    assert read["recomputed"] == pytest.approx(total["total"])
    # a query without a visible key has a weight of 0
    out = run("show", WEIGHTS, "--model", "question", "--ids", "0,0", "--explain", "1,1").out
    assert re.search(r"Σ e\^s +0  no key is visible", out)
    assert re.search(r"weight +0  not 0 ÷ 0 but 0", out)
    assert "stored      0\n" in out
    # how a value was set
    edited = run("show", "encoder.0.output", "--edit", "0.output[2:4] = mean", "--explain", "2,1").out
    assert re.search(r"stored +\S+  \(ablated to the mean\)\n", edited)


def test_a_sentence_that_is_cut_is_said_and_ids_have_their_words(run: Run) -> None:
    ended = run("show", "tokens", "--max-length", "4", "--cut", "--format", "csv", code=0)
    assert len(ended.out.splitlines()) == 5
    assert "4 are left out" in ended.err
    assert "0 shore" in run("show", "tokens", "--ids", "6 1,0").out


def test_sizes_and_choices_reach_the_model_and_the_version_is_printed(run: Run) -> None:
    arguments = ("--layers", "2", "--d-model", "16", "--heads", "4", "--norm", "pre", "--bias", "--causal")
    out = run("show", *arguments).out
    assert "encoder.1.self_attention.scores" in out
    assert "encoder.0.self_attention.query.bias" in out
    assert "encoder.norm" in out
    assert "after the query" in out
    ended = run("--version")
    assert (ended.code, ended.out) == (0, f"tui-transformer {__version__}\n")


def test_the_matrices_of_all_heads_stand_below_each_other(run: Run) -> None:
    arguments = ("--model", "encoder", "--d-model", "64", "--text", "the waves crashed")
    out = run("show", "weights", "--head", "all", *arguments).out
    alone = [run("show", "weights", "--head", str(head), *arguments).out for head in range(8)]
    assert out == "\n".join(alone)
    assert len({text.split("\n")[-2] for text in alone}) == 8
    assert run("show", "tokens", "--head", "all", *arguments).out == run("show", "tokens", *arguments).out


# Charts


QUESTION = ("--model", "question")


def test_a_chart_is_text_with_all_curves_named_or_a_figure(run, tmp_path):
    ended = run("chart", "embedding.positions", "--kind", "sines", *QUESTION, code=0)
    lines = ended.out.splitlines()
    assert lines[1].split("   ")[:3] == ["* sin 0", "+ sin 2", "o sin 4"]
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in ended.out
    assert "50" in lines[-2]
    # a row is that of the cell
    out = run("chart", "weights", "--head", "2", "--cell", "0,8", *QUESTION).out
    assert "▸" in next(line for line in out.splitlines() if "?" in line)
    assert "query where @0" in out
    # a figure
    path = tmp_path / "distance.svg"
    ended = run(
        "chart", "embedding.positions", "--kind", "positions-by-distance", "--out", str(path), *QUESTION, code=0
    )
    assert "PE·PEᵀ by distance" in path.read_text()
    ElementTree.fromstring(path.read_text())  # noqa: S314 - of our own figures
    assert run("chart", "weights", "--format", "svg", *QUESTION).out.startswith("<svg")


# `poster`


def test_the_cell_that_is_named_is_traced_back_or_else_the_largest(run: Run, tmp_path: Path) -> None:
    ended = run("poster", "weights", "--model", "question", "--cell", "2,0,8", "--levels", "3")
    first, *_ = ended.out.splitlines()
    assert first.startswith("0.98859 = e^(6.943 − 6.943) ÷ 1.0115   encoder.0.self_attention.weights")
    assert "scores" in ended.out
    ended = run("poster", "output.logits", "--model", "question", "--levels", "1")
    assert ended.out.startswith("9.0879 = 8.9712 + 0.11672   output.logits")
    # the ending chooses the form
    for name, begins in (("p.svg", b"<svg"), ("p.txt", b"0.98859 = "), ("p.png", b"\x89PNG")):
        if name.endswith("png"):
            pytest.importorskip("resvg_py")
        ended = run("poster", "weights", "--model", "question", "--cell", "2,0,8", "--out", name, code=0)
        assert (tmp_path / name).read_bytes().startswith(begins)


# `positions`


def test_the_table_has_any_number_of_positions(run: Run) -> None:
    table = run("positions", "--count", "300", "--d-model", "6", "--format", "json").json
    assert table["shape"] == [300, 6]
    np.testing.assert_allclose(table["values"], encoding(6, 300), atol=1e-9)
    ended = run("positions", "--count", "2", "--part", "cos", "--dimensions", "1,2,5", "--format", "json")
    assert ended.json["columns"]["labels"] == ["1", "5"]
    for what in ("similarity", "facts"):
        run("positions", what, "--dimensions", "0").refuses(f"are of the table: {what} takes every dimension", 2)
    # of many positions the first alone are compared with each other, which is said
    near = {count: run("positions", "facts", "--count", count).out for count in ("40", "41", "2001")}
    assert ["sums of the first 40 positions" in out for out in near.values()] == [False, True, True]
    assert ["rows of the first 2,000 positions" in out for out in near.values()] == [False, False, True]
    ended = run("positions", "--chart", "--dimensions", "0,8")
    assert "* sin 0   + sin 8\n" in ended.out
    assert "\x1b" not in ended.out


def test_sines_and_cosines_are_written_apart_as_text_and_figures(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "waves"
    assert run("positions", "--files", str(folder), "--count", "20").code == 0
    written = [f"{part}.{kind}" for part in ("cos", "sin") for kind in ("dat", "svg", "txt")]
    assert sorted(path.name for path in folder.iterdir()) == written
    figure = ElementTree.parse(folder / "sin.svg").getroot()  # noqa: S314 - our own file
    said = [element.text for element in figure.iter("{http://www.w3.org/2000/svg}text")]
    assert {"sin 0", "sin 14", "position"} <= set(said)
    assert "0.8415" in (folder / "sin.txt").read_text()
    assert "0.5403" in (folder / "cos.txt").read_text()


def points(text: str) -> list[tuple[int, int, float]]:
    """The numbers of lines as gnuplot reads them: remarks and blank lines are none."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [(int(position), int(dimension), float(value)) for position, dimension, value in lines]


def test_a_table_is_written_as_lines_of_position_dimension_and_value(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "sin.dat"
    assert run("positions", "--count", "40", "--d-model", "6", "--part", "sin", "--out", str(out)).code == 0
    text = out.read_text()
    assert text.startswith("# position dimension embedding.positions\n0 0 0.0\n0 2 0.0\n0 4 0.0\n\n1 0 ")
    table = encoding(6, 40)
    assert points(text) == [(row, column, table[row, column]) for row in range(40) for column in (0, 2, 4)]
    assert text.count("\n\n") == 40  # a blank line behind every position: where splot begins another line
    # to standard output and into the folder
    assert len(points(run("positions", "--count", "3", "--d-model", "4", "--format", "dat").out)) == 12
    run("positions", "--files", str(tmp_path), "--count", "3", "--d-model", "4", "--dimensions", "1,2")
    assert [place[:2] for place in points((tmp_path / "cos.dat").read_text())] == [(0, 1), (1, 1), (2, 1)]
    assert [place[:2] for place in points((tmp_path / "sin.dat").read_text())] == [(0, 2), (1, 2), (2, 2)]
    # the positions of a model
    out = tmp_path / "positions.dat"
    arguments = ("show", "embedding.positions", "--model", "encoder", "--dtype", "float64", "--out", str(out))
    assert run(*arguments, "--text", "the waves").code == 0
    table = encoding(8, 2)
    assert points(out.read_text()) == [(row, column, table[row, column]) for row in range(2) for column in range(8)]


def test_dimensions_are_called_by_their_numbers_in_any_order(run: Run) -> None:
    given = ("positions", "--count", "2", "--dimensions", "8,0")
    (_, *wanted), *rows = csv.reader(io.StringIO(run(*given, "--format", "csv").out))
    assert wanted == ["8", "0"]
    lines = [line.split() for line in run(*given, "--format", "dat").out.splitlines()[1:] if line]
    assert lines == [[row[0], name, value] for row in rows for name, value in zip(wanted, row[1:], strict=True)]


def test_likeness_is_a_table_by_distance_with_the_reason_and_every_promise_is_measured(run: Run) -> None:
    rows = run("positions", "similarity", "--count", "3", "--format", "csv").table
    assert [row["distance"] for row in rows] == ["0", "1", "2"]
    assert float(rows[0]["dot"]) == 8
    assert "nearby positions are alike" in run("positions", "similarity").out
    rows = run("positions", "facts", "--format", "json").json
    assert [row["promise"] for row in rows] == ["bounded", "unique", "the same everywhere", "sums told apart"]
    assert rows[0]["measured"] == "all values lie from -1.0000 to 1.0000"
    rows = run("positions", "facts", "--count", "1", "--format", "json").json  # nothing is near another
    assert [row["measured"] for row in rows[1::2]] == ["one row", "one sum"]
