"""Charts as figures."""

import math
import re
from xml.etree import ElementTree as ET

import pytest

from tui_transformer.report.svg import HEIGHT, WIDTH, chart_svg
from tui_transformer.views.charts import BarChart, Histogram, LineChart, Series

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


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - of our own figures


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_a_figure_with_numbers_alone(name):
    chart = CHARTS[name]
    figure = parsed(chart_svg(chart))
    assert "script" not in {node.tag.rpartition("}")[2] for node in figure.iter()}
    text = chart_svg(chart)
    assert "nan" not in re.sub(r">[^<]*<", "", text)
    assert "\x1b" not in text


def test_all_curves_are_named_and_inside():
    figure = parsed(chart_svg(CHARTS["many"]))
    texts = [node for node in figure.iter() if node.tag.endswith("text")]
    assert {f"curve {i}" for i in range(30)} <= {node.text for node in texts}
    assert all(0 <= float(node.get("x")) <= WIDTH for node in texts)
    assert all(0 <= float(node.get("y")) <= float(figure.get("height")) for node in texts)
    assert float(figure.get("height")) >= HEIGHT


def test_bars_grow_from_the_baseline():
    figure = parsed(chart_svg(CHARTS["bars"]))
    up, down = [node for node in figure.iter() if node.tag.endswith("rect")][1:]
    assert float(up.get("y")) + float(up.get("height")) == pytest.approx(float(down.get("y")), abs=0.02)
    assert float(down.get("height")) == pytest.approx(2 * float(up.get("height")), abs=0.02)


def test_counts_are_marked_at_whole_numbers():
    texts = [node.text for node in parsed(chart_svg(CHARTS["counts"])).iter() if node.tag.endswith("text")]
    assert {"0", "1", "2", "3"} <= set(texts)
    assert {"0.2", "0.4"} <= set(texts)
