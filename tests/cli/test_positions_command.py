"""`positions`: tables, curves and facts of the positional encoding, on the terminal and in files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import Run

from tui_transformer.analysis.positions import encoding


def test_the_table_has_any_number_of_positions(run: Run) -> None:
    table = json.loads(run("positions", "--count", "300", "--d-model", "6", "--format", "json").out)
    assert table["shape"] == [300, 6]
    np.testing.assert_allclose(table["values"], encoding(6, 300), atol=1e-9)


def test_dimensions_are_chosen_and_sines_are_apart(run: Run) -> None:
    ended = run("positions", "--count", "2", "--part", "cos", "--dimensions", "1,2,5", "--format", "json")
    assert json.loads(ended.out)["columns"]["labels"] == ["1", "5"]


def test_sines_and_cosines_are_written_apart_as_text_and_figures(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "waves"
    assert run("positions", "--files", str(folder), "--count", "20").code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "cos.dat",
        "cos.svg",
        "cos.txt",
        "sin.dat",
        "sin.svg",
        "sin.txt",
    ]
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


def test_points_go_to_standard_output_and_into_the_folder_too(run: Run, tmp_path: Path) -> None:
    assert len(points(run("positions", "--count", "3", "--d-model", "4", "--format", "dat").out)) == 12
    run("positions", "--files", str(tmp_path), "--count", "3", "--d-model", "4", "--dimensions", "1,2")
    assert [place[:2] for place in points((tmp_path / "cos.dat").read_text())] == [(0, 1), (1, 1), (2, 1)]
    assert [place[:2] for place in points((tmp_path / "sin.dat").read_text())] == [(0, 2), (1, 2), (2, 2)]


def test_the_positions_of_a_model_are_written_so_too(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "positions.dat"
    arguments = ("show", "embedding.positions", "--model", "encoder", "--dtype", "float64", "--out", str(out))
    assert run(*arguments, "--text", "the waves").code == 0
    table = encoding(8, 2)
    assert points(out.read_text()) == [(row, column, table[row, column]) for row in range(2) for column in range(8)]


def test_a_chart_as_text_has_no_escapes(run: Run) -> None:
    ended = run("positions", "--chart", "--dimensions", "0,8")
    assert "* sin 0   + sin 8\n" in ended.out
    assert "\x1b" not in ended.out


def test_likeness_is_a_table_by_distance_with_the_reason(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("positions", "similarity", "--count", "3", "--format", "csv").out)))
    assert [row["distance"] for row in rows] == ["0", "1", "2"]
    assert float(rows[0]["dot"]) == 8
    assert "nearby positions are alike" in run("positions", "similarity").out


def test_every_promise_is_measured(run: Run) -> None:
    rows = json.loads(run("positions", "facts", "--format", "json").out)
    assert [row["promise"] for row in rows] == ["bounded", "unique", "the same everywhere", "sums told apart"]
    assert rows[0]["measured"] == "all values lie from -1.0000 to 1.0000"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--dimensions", "16"), "there is no dimension 16"),
        (("--chart", "--format", "csv"), "a chart is text or SVG"),
        (("facts", "--chart"), "leave --chart"),
        (("--files", "x", "--format", "csv"), "leave --out"),
        (("--out", "a.png"), "has to end in"),
        (("similarity", "--out", "a.npz"), "a table is text, CSV or JSON"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = run("positions", *arguments)
    assert ended.code in (1, 2)
    assert says in ended.err
