"""Views as files, and how far two are apart."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from reference import in_float64
from refusing import refuses

from tui_transformer.engine.edits import Ablate, Change, Edit, Patch
from tui_transformer.model import Model
from tui_transformer.records import replace
from tui_transformer.report import svg, text
from tui_transformer.report.differences import compare, compare_blocks
from tui_transformer.report.export import SUFFIXES, csv_pieces, export, json_pieces, point_pieces
from tui_transformer.report.svg import HEIGHT, WIDTH, chart_svg
from tui_transformer.report.text import EVERYTHING, Page
from tui_transformer.text.display import cells, visible
from tui_transformer.views.charts import BarChart, Histogram, LineChart, Series
from tui_transformer.views.step_view import Labels, view_of
from tui_transformer.views.view import RAMPS, Axis, View

SCALED = "encoder.0.self_attention.scaled"
EVIL = ('<&">', "a,b\nc", "\x1b[31m", "字字字字字字字字字字", "‮left", "=1+1", "'", "")


def _view(values: np.ndarray, labels: Callable[[int], str] = str, name: str = "made") -> View:
    def window(rows: range, columns: range) -> np.ndarray:
        return values[rows.start : rows.stop, columns.start : columns.stop]

    height, width = values.shape
    return View(name, name, Axis("query", height, labels), Axis("key", width, labels), "diverging", window)


def _evil(index: int) -> str:
    return visible(EVIL[index % len(EVIL)])


@pytest.fixture
def special() -> np.ndarray:
    values = np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)
    values[0, :3] = -np.inf, np.inf, np.nan
    values[1, :3] = 1e-30, 1e30, 0.1
    return values


def test_csv_and_json_keep_every_value_and_label(special: np.ndarray) -> None:
    # CSV
    table = list(csv.reader(io.StringIO("".join(csv_pieces(_view(special, _evil))))))
    assert table[0][1:] == [_evil(index) for index in range(8)]
    np.testing.assert_array_equal(np.array([row[1:] for row in table[1:]], dtype=np.float32), special)
    # JSON, which is strict
    read = json.loads("".join(json_pieces(_view(special, _evil))), parse_constant=lambda name: pytest.fail(name))
    values = np.array([[np.nan if value is None else value for value in row] for row in read["values"]])
    np.testing.assert_array_equal(values.astype(np.float32), np.where(np.isfinite(special), special, np.nan))
    assert read["columns"]["labels"][1] == _evil(1)
    # large ones in parts
    values = np.arange(300 * 1000, dtype=np.float32).reshape(300, 1000)
    pieces = list(json_pieces(_view(values)))
    assert len(pieces) > 3
    np.testing.assert_array_equal(np.array(json.loads("".join(pieces))["values"]), values)


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - of our own figures


def test_svg_is_well_formed_and_has_every_label_that_fits() -> None:
    for shape in ((8, 8), (1, 1), (1, 200), (200, 1), (64, 64)):
        values = np.random.default_rng(0).standard_normal(shape)
        figure = parsed(svg.view_svg(_view(values, _evil, "<name> & more")))
        words = ["".join(element.itertext()) for element in figure.iter("{http://www.w3.org/2000/svg}text")]
        assert any("<name> & more" in word for word in words)
        assert '<&">' in words


def test_long_words_that_occur_again_are_told_apart_by_their_positions() -> None:
    labels = [f"internationalization @{index}" for index in (0, 3)]
    view = _view(np.eye(2), labels.__getitem__)
    for figure in (svg.view_svg(view), chart_svg(BarChart("", tuple(labels), (1.0, 2.0)))):
        words = [element.text for element in parsed(figure).iter("{http://www.w3.org/2000/svg}text")]
        assert {word for word in words if word and word.startswith("inter")} == {"international…@0", "international…@3"}


def test_the_colours_of_weights_reach_to_the_largest_and_those_of_outliers_do_not() -> None:
    values = np.full((40, 40), 0.01)
    values[0, 0] = 1.0
    weights = replace(_view(values), kind="sequential", shares=True)
    assert "beyond" not in svg.view_svg(weights)
    assert "beyond: to 1" in svg.view_svg(replace(weights, shares=False))
    trace = Model.load("question").trace("where is the map ?")
    labels = Labels()
    assert view_of(trace, "encoder.0.self_attention.weights", labels).shares
    assert view_of(trace, "output.probabilities", labels).shares
    assert not view_of(trace, SCALED, labels).shares


def test_the_ends_of_a_scale_are_told_apart() -> None:
    values = np.array([[0.2, 0.2000012]], np.float32)
    figure = svg.view_svg(replace(_view(values), kind="sequential", shares=True))
    words = [element.text for element in parsed(figure).iter("{http://www.w3.org/2000/svg}text")]
    assert {"0.2000012", "0.2000006", "0.2"} <= {*words}
    assert min(ends(figure)) >= 0


def ends(figure: str) -> list[float]:
    """How far each text of a figure is from its lower and right side, in pixels: below 0 of one that is cut."""
    root, room = parsed(figure), list[float]()
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        long = cells("".join(element.itertext())) * 0.602 * float(element.get("font-size", 11))
        x, y, anchor = float(element.attrib["x"]), float(element.attrib["y"]), element.get("text-anchor", "start")
        if "rotate(-45" in element.get("transform", ""):
            room.append(float(root.attrib["height"]) - y - long * math.sqrt(0.5))
        elif "transform" not in element.attrib:
            begins = x - long * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
            room += begins, float(root.attrib["width"]) - begins - long
    return room


def test_no_text_of_a_figure_is_cut() -> None:
    values = np.full((300, 4), 0.001)
    values[0, 0] = -1234.5678
    view = _view(values, name="gradient of a step with a long name, " * 4)
    assert min(ends(svg.view_svg(view))) >= 0
    wide = _view(np.tile(values.T, (1, 4)))
    assert "beyond: to -1235" in svg.view_svg(wide)
    assert min(ends(svg.view_svg(wide))) >= 0
    words = "mean over 7 of 9 queries that see 3 keys or more, " * 4
    line = Series(words, (0.0, 1.0), (0.0, 1.0))
    charts = (
        BarChart(words, ("0 self_attention.query.weight",) * 3, (1.0, 2.0, 3.0)),
        Histogram("", (0.0, 1.0), (3,), words),
        LineChart("", words, "", (line, line)),
        LineChart("", words[:123], "", (Series("", (0.0, 1.0), (0.0, 1.0)),)),
    )
    for chart in charts:
        assert min(ends(chart_svg(chart))) >= 0


def test_bars_on_a_log_scale_of_one_power_of_ten_have_marks_to_be_read_by() -> None:
    texts = [node.text for node in parsed(chart_svg(BarChart("", ("a", "b"), (2e-5, 6e-5), logarithmic=True))).iter()]
    assert {"1e-5", "2e-5", "5e-5"} <= {*texts}
    texts = [node.text for node in parsed(chart_svg(BarChart("", ("a", "b"), (2e-5, 6e-3), logarithmic=True))).iter()]
    assert {"1e-5", "1e-4", "1e-3"} <= {*texts}
    assert "5e-5" not in texts


def test_a_bar_that_is_infinite_is_not_said_to_be_masked() -> None:
    for logarithmic in (False, True):
        chart = BarChart("", ("a", "b", "c", "d"), (math.inf, -math.inf, math.nan, 2.0), logarithmic=logarithmic)
        texts = [node.text for node in parsed(chart_svg(chart)).iter()]
        assert (texts.count("∞"), texts.count("×")) == (1, 2)


def test_the_smallest_bar_on_a_log_scale_has_a_height() -> None:
    for values in ((0.001, 1.0), (1.0,), (0.002, 0.001)):
        figure = parsed(chart_svg(BarChart("", tuple("ab"[: len(values)]), values, logarithmic=True)))
        heights = [
            float(each.get("height", "0"))
            for each in figure.iter("{http://www.w3.org/2000/svg}rect")
            if "x" in each.attrib
        ]
        assert len(heights) == len(values)
        assert min(heights) > 10


def test_svg_draws_every_cell_once_and_refuses_what_is_too_large(special: np.ndarray) -> None:
    figure = svg.view_svg(_view(special))
    assert len(re.findall(r"M[\d.]+ [\d.]+h", figure)) == special.size
    assert "masked" in figure
    assert "masked" not in svg.view_svg(_view(np.ones((2, 2))))
    refuses("65,536", lambda: svg.view_svg(_view(np.zeros((300, 300)))))
    # figures of a scale share their colours
    assert svg.color("diverging", 0.5) == RAMPS["diverging"][4]
    assert svg.color("sequential", 0.0) == RAMPS["sequential"][0]
    assert svg.color("sequential", 1.0) == RAMPS["sequential"][-1]


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_text_keeps_to_the_width_and_aligns(special: np.ndarray, width: int) -> None:
    for columns in (1, 8, 30):
        lines = list(text.matrix(_view(np.tile(special, (1, 4))[:, :columns], _evil), Page(width=width)))
        assert max(map(cells, lines)) <= width
        assert len({cells(line) for line in lines[3:11]}) == 1


def test_text_shows_masked_cells_in_five_digits_and_only_computes_what_is_on_the_page() -> None:
    values = np.zeros((100, 2))
    values[0] = -np.inf, np.nan
    lines = list(text.matrix(_view(values), Page(rows=3)))
    assert lines[2].split() == ["0", "-∞", "NaN"]
    assert lines[-2:] == ["…", "3 of 100 rows, 2 of 2 columns"]
    assert len(list(text.matrix(_view(values), EVERYTHING))) == 102
    # about five digits
    for largest, shown in {0.0: "0.0000", 0.5: "0.5000", 12.5: "12.500", 1234.5: "1234.5", 3e9: "3.000e+09"}.items():
        assert shown in text.render(_view(np.array([[largest]])))
    # only the cells on the page are computed
    asked: list[int] = []

    def window(rows: range, columns: range) -> np.ndarray:
        asked.append(len(rows) * len(columns))
        return np.zeros((len(rows), len(columns)))

    axis = Axis("query", 4096, str)
    text.render(View("x", "x", axis, axis, "diverging", window))
    assert sum(asked) < 2000


def test_text_says_why_all_weights_of_a_query_are_zero() -> None:
    model = Model.load("decoder", vocabulary="english", device="cpu")
    trace = model.trace(ids=[[1] * 6, [1, 1, 8, 1, 1, 1]])
    first, second = (view_of(trace, "decoder.0.self_attention.weights", Labels(), item=item) for item in (0, 1))
    for width in (80, 30):
        assert "no key is visible to query 0, 1, 2, 3: all weights 0\n" in text.render(first, Page(width, 4))
        assert "no key is visible" not in text.render(second, Page(width, 4))


def test_every_step_and_weight_has_every_format_and_another_suffix_is_refused(tmp_path: Path) -> None:
    model = Model.load("decoder", layers=1)
    trace = model.trace("the waves crashed")
    for name in (*trace.names, *trace.program.weights):
        view = view_of(trace, name, Labels({"tokens": ("the", "waves", "crashed")}))
        for suffix in SUFFIXES:
            export(view, tmp_path / f"{name}{suffix}")
            assert (tmp_path / f"{name}{suffix}").stat().st_size > 0
    refuses("svg", lambda: export(_view(np.zeros((2, 2))), tmp_path / "a.png"))
    assert not (tmp_path / "a.png").exists()


def test_every_cell_of_a_model_can_be_explained_and_a_long_sum_is_cut() -> None:
    trace = in_float64("encoder", activation="gelu", norm="pre", bias=True).trace("the waves crashed")
    for name in trace.names:
        explanation = trace.explain(name, row=min(1, trace.program.shape(name)[-1] - 1))
        shown = text.cell_text(explanation)
        assert f"stored      {explanation.stored:.9g}" in shown
        data = json.loads(json.dumps(text.cell_data(explanation), allow_nan=False))
        assert data["stored"] == pytest.approx(explanation.stored)
    # a long sum is cut
    explanation = Model.load("encoder").trace("the waves").explain("encoder.0.feed_forward.output", row=1, column=0)
    assert "88 more terms" in text.cell_text(explanation)
    assert "more terms" not in text.cell_text(explanation, page=EVERYTHING)


SET: list[tuple[Change, str]] = [
    (Edit(SCALED, (1, 0, 1), 2.0), "(set by hand)"),
    (Ablate(SCALED, (range(1, 2), range(3), range(3))), "(ablated to 0)"),
    (Ablate(SCALED, (range(1, 2), range(3), range(3)), mean=True), "(ablated to the mean)"),
    (Patch.of(SCALED, np.ones((2, 3, 3))), "(patched)"),
]


def test_a_value_that_was_not_computed_says_how_it_was_set() -> None:
    plain = Model.load("encoder", heads=2).trace("the waves crashed")
    for edit, said in SET:
        trace = plain.edited([Patch.of(SCALED, np.zeros((2, 3, 3))), edit])
        explanation = trace.explain_cell(SCALED, (1, 0, 1))
        assert said in text.cell_text(explanation, edits=trace.edits)
        assert "(set by an edit)" in text.cell_text(explanation)
        other = trace.explain_cell("encoder.0.self_attention.scores", (1, 0, 1))
        assert "(" not in text.cell_text(other, edits=trace.edits).partition("stored ")[2]


def test_points_have_the_places_of_words_and_the_numbers_of_what_is_called_so() -> None:
    values = np.array([[1.5, -np.inf], [0.25, 3e-9]])
    assert "".join(point_pieces(_view(values, lambda i: "12"[i]))).splitlines()[1:3] == ["1 1 1.5", "1 2 -inf"]
    for labels in ("ab", "55", "21"):  # words, and tokens that only look like numbers
        told = "".join(point_pieces(_view(values, labels.__getitem__)))
        assert told == "# query key made\n0 0 1.5\n0 1 -inf\n\n1 0 0.25\n1 1 3e-09\n\n"


INF, NAN = math.inf, math.nan


COMPARED = [
    ([1.0, 2.0], [1.0, 2.0], (False, 0.0)),
    ([-INF, 2.0], [-INF, 2.0], (False, 0.0)),
    ([NAN, 2.0], [NAN, 2.0], (False, 0.0)),
    ([NAN, 0.0], [NAN, 1e-6], (False, 1e-6)),
    ([NAN, 2.0], [0.0, 2.0], (True, INF)),
    ([-INF, 2.0], [INF, 2.0], (True, INF)),
    ([-INF, 2.0], [-1e30, 2.0], (True, INF)),
    ([0.0], [1e-6], (False, 1e-6)),
    ([0.0], [2e-5], (True, 2e-5)),
    ([1e6], [1e6 + 1], (False, 1.0)),
    ([1e6], [1e6 + 20], (True, 20.0)),
]


def test_values_are_compared_with_infinities_and_nan() -> None:
    def compared(first: list[float], second: list[float], tolerance: float = 1e-5) -> tuple[bool, float]:
        difference = compare("x", np.array(first), np.array(second), tolerance)
        return difference.beyond, difference.largest

    for first, second, expected in COMPARED:
        assert compared(first, second) == compared(second, first) == expected, (first, second)
    # without a tolerance equal values are the same still
    assert compared([1.0, -INF], [1.0, -INF], 0.0) == (False, 0.0)
    assert compared([1.0], [1.0 + 1e-15], 0.0)[0]


def test_the_cell_with_the_largest_difference_is_found() -> None:
    first = np.zeros((2, 3))
    second = first.copy()
    second[1, 2] = 5.0
    difference = compare("x", first, second, 1e-5)
    assert (difference.index, difference.values, difference.relative) == ((1, 2), (0.0, 5.0), 1.0)
    # a batch axis of 1 is left out
    assert not compare("x", np.ones((1, 2, 3)), np.ones((2, 3)), 1e-5).beyond
    assert compare("x", np.ones((2, 2, 3)), np.ones((2, 3)), 1e-5).beyond
    # float32 beside float64
    exact = np.array([0.1])
    difference = compare("x", exact.astype(np.float32), exact, 1e-5)
    assert 0 < difference.largest < 1e-8
    assert not difference.beyond


def test_blocks_are_compared_as_the_whole() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 3, 5, 4))
    first[1, 2, 3] = second[1, 2, 3] = -INF
    regions = [(range(i, i + 1), range(j, min(j + 2, 5)), range(4)) for i in range(3) for j in range(0, 5, 2)]
    parts = [tuple(slice(axis.start, axis.stop) for axis in region) for region in regions]
    blocks = [(region, first[part], second[part]) for region, part in zip(regions, parts, strict=True)]
    in_blocks, whole = compare_blocks("x", (3, 5, 4), blocks, 1e-5), compare("x", first, second, 1e-5)
    assert in_blocks == whole
    assert compare_blocks("x", (3, 5, 4), [(r, a, a) for r, a, _ in blocks], 0.0).largest == 0.0


# Charts as figures
HOSTILE = "</text><script>\x1b[2J&\u202e"
X = (0.0, 1.0, 2.0)
CHARTS = {
    "curves": LineChart("Curves", "x", "y", (Series("a", X, (0.0, math.nan, -2.0)), Series("b", (1.0,), (1.0,)))),
    "log": LineChart("Log", "x", "y", (Series("a", X, (1e-9, 0.0, 1e3)),), logarithmic=True),
    "many": LineChart("Many", "", "", tuple(Series(f"curve {i}", X, (0.0, float(i), 1.0)) for i in range(30))),
    "bars": BarChart("Bars", ("a", "b", "c"), (1.0, -2.0, math.nan), 1),
    "log bars": BarChart("Bars", ("a", "b"), (1e-9, 0.0), logarithmic=True),
    "counts": Histogram("Counts", (0.0, 0.5, 1.0), (3, 1), "2 values"),
    "no curves": LineChart("", "", "", ()),
    "no bars": BarChart("", (), ()),
    "no counts": Histogram("", (), ()),
    "flat": LineChart("Flat", "", "", (Series("a", X, (5.0, 5.0, 5.0)),), counted=True),
    "hostile": LineChart(HOSTILE, HOSTILE, HOSTILE, (Series(HOSTILE, X, (0.0, 1.0, math.inf)),)),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_a_figure_with_numbers_alone(name):
    chart = CHARTS[name]
    text = chart_svg(chart)
    assert "script" not in {node.tag.rpartition("}")[2] for node in parsed(text).iter()}
    assert "nan" not in re.sub(r">[^<]*<", "", text)
    assert "\x1b" not in text


def test_charts_have_all_curves_inside_bars_from_the_baseline_and_whole_counts():
    # all curves are named and inside
    figure = parsed(chart_svg(CHARTS["many"]))
    texts = [node for node in figure.iter() if node.tag.endswith("text")]
    assert {f"curve {i}" for i in range(30)} <= {node.text for node in texts}
    assert all(0 <= float(node.get("x")) <= WIDTH for node in texts)
    assert all(0 <= float(node.get("y")) <= float(figure.get("height")) for node in texts)
    assert float(figure.get("height")) >= HEIGHT
    # bars grow from the baseline
    figure = parsed(chart_svg(CHARTS["bars"]))
    up, down = [node for node in figure.iter() if node.tag.endswith("rect")][1:]
    assert float(up.get("y")) + float(up.get("height")) == pytest.approx(float(down.get("y")), abs=0.02)
    assert float(down.get("height")) == pytest.approx(2 * float(up.get("height")), abs=0.02)
    # counts are marked at whole numbers
    texts = [node.text for node in parsed(chart_svg(CHARTS["counts"])).iter() if node.tag.endswith("text")]
    assert {"0", "1", "2", "3"} <= set(texts)
    assert {"0.2", "0.4"} <= set(texts)
