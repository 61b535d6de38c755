"""`chart`: charts as text and figures."""

from xml.etree import ElementTree as ET

import pytest

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
