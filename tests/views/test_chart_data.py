"""Charts: what is in them, and which suit a step."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import REFERENCES, in_float64

from tui_transformer.analysis.statistics import CELLS
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.ops import Sinusoid
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.explorer.widgets.chart_drawing import chart_text
from tui_transformer.model import Model
from tui_transformer.report.svg import view_svg
from tui_transformer.views import position_charts as positions
from tui_transformer.views.chart_data import (
    MOST_BARS,
    chart,
    charts_for,
    entropy_bars,
    histogram_of,
    residual_norm_line,
    row_bars,
    value_histogram,
)
from tui_transformer.views.charts import BarChart, Histogram, LineChart, tick_texts, ticks
from tui_transformer.views.step_view import Labels, Place, view_of
from tui_transformer.views.view import Axis, Values, View, window_of

LABELS = Labels({"tokens": ("the", "waves", "crashed", "!")})
ATTENTION = "decoder.0.self_attention"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Model.load("decoder", device="cpu", bias=True).trace(ids=[1, 2, 3, 7])


def large(rows: int, columns: int) -> tuple[View, list[int]]:
    """A view that counts the cells that are read of it."""
    read: list[int] = []

    def window(wanted_rows: range, wanted_columns: range) -> Values:
        read.append(len(wanted_rows) * len(wanted_columns))
        return np.add.outer(np.array(wanted_rows, dtype=float), np.zeros(len(wanted_columns)))

    return View("m", "m", Axis("row", rows, str), Axis("column", columns, str), "diverging", window), read


def test_a_row_is_bars_named_by_tokens_with_masked_cells_left_open(trace: Trace) -> None:
    bars = row_bars(view_of(trace, f"{ATTENTION}.masked", LABELS, head=2), 1, 3)
    assert bars.labels == ("the", "waves", "crashed", "!")
    assert bars.values[:2] == pytest.approx(trace[f"{ATTENTION}.masked"][2, 1, :2])
    assert bars.values[2:] == (-math.inf, -math.inf)
    assert bars.marked == 3
    assert bars.title == f"{ATTENTION}.masked · head 2 · query waves @1 · by key"


@pytest.mark.parametrize(("column", "first", "marked"), [(0, 0, 0), (60, 40, 20), (127, 88, 39)])
def test_of_a_wide_row_the_columns_around_the_cursor_are_shown(trace, column, first, marked):
    name = "decoder.0.feed_forward.hidden"
    bars = row_bars(view_of(trace, name, LABELS), 2, column)
    assert bars.labels == tuple(map(str, range(first, first + MOST_BARS)))
    assert bars.values == pytest.approx(trace[name][2, first : first + MOST_BARS])
    assert bars.marked == marked
    assert bars.title.endswith(f"by feed-forward, {first} to {first + 39} of 128")


def test_a_histogram_counts_every_visible_cell_and_notes_the_statistics(trace: Trace) -> None:
    histogram = value_histogram(view_of(trace, f"{ATTENTION}.masked", LABELS, head=1))
    assert sum(histogram.counts) == 10
    assert len(histogram.edges) == len(histogram.counts) + 1
    assert histogram.title == f"Values · {ATTENTION}.masked · head 1"
    assert histogram.note.startswith("10 values · mean ")
    assert histogram.note.endswith("· 6 masked")
    histogram = histogram_of(np.array([0.0, 2.0, 4.0, 6.0]), "x")
    assert histogram.note == "4 values · mean 3 · deviation 2.236 · from 0 to 6 · norm 7.483 · 25.0 % zeros"
    assert histogram_of(np.full(3, -np.inf), "x").note == "no values · 3 masked"
    assert histogram_of(np.array([3.0]), "x").note.startswith("1 value · mean 3")
    broken = np.array([np.nan, np.nan, np.inf, -np.inf, 1.0])
    assert histogram_of(broken, "x").note.endswith("1 masked · 2 NaN · 1 ∞")


def test_what_is_no_number_is_not_said_to_be_masked() -> None:
    cells = np.array([[1.0, -np.inf, np.nan, np.inf]])
    view = View("m", "m", Axis("row", 1, str), Axis("column", 4, str), "diverging", window_of(cells))
    lines = chart_text(row_bars(view, 0, 0)).splitlines()[1:]
    assert [line.split("│")[-1].strip() for line in lines[1:]] == ["× masked", "NaN", "∞"]
    assert view.absent_in(cells) == "masked, NaN"
    assert "masked, NaN, ∞" in view_svg(view)
    # a view that leaves cells out
    assert replace(view, absent="no path").absent_in(cells) == "no path"
    hidden = replace(view, absent="hidden")
    assert hidden.absent_in(cells) == "masked, hidden"
    assert "NaN" not in chart_text(row_bars(hidden, 0, 0)) + value_histogram(hidden).note


def test_of_a_huge_matrix_only_what_is_shown_is_read_or_evenly_spaced_rows() -> None:
    # a histogram
    view, read = large(10_000, 4_096)
    histogram = value_histogram(view)
    assert sum(read) == sum(histogram.counts) <= CELLS
    assert max(read) == 4_096
    assert histogram.note.endswith("1,024 of 10,000 rows, evenly spaced")
    assert histogram.edges[0] == 0.0
    assert histogram.edges[-1] > 9_980
    # a row
    view, read = large(10_000, 150_000)
    row_bars(view, 5_000, 70_000)
    assert read == [MOST_BARS]


def test_waves_go_through_the_encoding_of_every_position() -> None:
    model = in_float64("encoder")
    encoding = model.trace(ids=[1, 2, 3, 4, 5])["embedding.positions"]
    waves = positions.encoding_waves(Sinusoid(8), 5, (0, 3))
    assert [series.label for series in waves.series] == ["sin 0", "cos 3"]
    for series, dimension in zip(waves.series, (0, 3), strict=True):
        points = dict(zip(series.x, series.y, strict=True))
        assert (min(points), max(points)) == (0.0, 50.0)
        assert [points[position] for position in range(5)] == pytest.approx(encoding[:, dimension])
        assert points[0.5] == pytest.approx(
            (math.sin if dimension == 0 else math.cos)(0.5 / (1 if not dimension else 10))
        )
    assert waves.x_label == "position (the sentence: 0 to 4)"
    # of a long sentence those around the cursor
    for near in (0, 2_000, 4_095):
        (series,) = positions.encoding_waves(Sinusoid(8), 4_096, (0,), near=near).series
        assert series.x[0] <= near <= series.x[-1]
        assert len(series.x) == 801


def test_the_waves_hold_the_pair_of_the_cursor_and_mark_it_with_the_value_of_the_trace(trace: Trace) -> None:
    for width, column in ((8, 5), (512, 511), (1, 0), (7, 6), (2, 1)):
        dimensions = positions.wave_dimensions(Sinusoid(width), column)
        assert column in dimensions
        assert all(0 <= dimension < width for dimension in dimensions)
        assert list(dimensions) == sorted(set(dimensions))
        assert len(dimensions) <= 5
        assert column - column % 2 in dimensions
    edited = trace.edited([Edit("embedding.positions", (1, 4), 0.25)])
    view = view_of(edited, "embedding.positions", LABELS)
    waves = chart("waves", edited, view, Place(0, 1, 4))
    assert isinstance(waves, LineChart)
    assert (waves.series[-1].label, waves.series[-1].x, waves.series[-1].y) == ("token waves @1: 0.25", (1.0,), (0.25,))


def test_entropy_has_a_bar_for_every_head_and_relative_entropy_lies_between_none_and_all(trace: Trace) -> None:
    bars = entropy_bars(trace, f"{ATTENTION}.weights", head=3)
    assert bars.labels == tuple("01234567")
    assert bars.marked == 3
    assert all(0.0 < value <= 2.0 for value in bars.values)
    assert "in bits, at most 2 (4 keys)" in bars.title
    assert bars.title.endswith("mean over 2 of 4 queries that see 3 keys or more")
    bars = entropy_bars(trace, f"{ATTENTION}.weights", relative=True)
    assert all(0.0 < value <= 1.0 for value in bars.values)
    assert bars.title.startswith("Relative entropy of every head, 0 to 1")


def test_norms_are_a_line_with_the_step_marked(trace: Trace) -> None:
    norms = residual_norm_line(trace, "decoder.0.output")
    line, mark = norms.series
    step = trace.program.aliases["decoder.0.output"]
    assert line.label == "decoder"
    assert line.x == tuple(map(float, range(5)))
    assert (mark.x, mark.y) == ((4.0,), (line.y[4],))
    assert mark.label.startswith(f"4 {step}: ")
    assert norms.x_label == f"step of the stream, embedding.output to {step}"
    short = chart_text(residual_norm_line(Model.load("question").trace(ids=[1, 2])))
    assert short.splitlines()[-2].split() == ["0", "1", "2", "3"]  # between two steps there is none


KINDS = {
    "embedding.positions": ("waves", "sines", "cosines", "all waves", "positions by distance", "row", "histogram"),
    f"{ATTENTION}.weights": ("row", "entropy", "relative entropy", "histogram"),
    f"{ATTENTION}.scores": ("row", "histogram"),
    f"{ATTENTION}.residual": ("row", "histogram", "residual norms"),
    "decoder.0.output": ("row", "histogram", "residual norms"),
    "output.probabilities": ("row", "histogram"),
    "embedding.tokens.weight": ("row", "histogram"),
    "tokens": (),
}


def test_only_charts_that_suit_a_step_are_offered(trace: Trace) -> None:
    assert {name: charts_for(trace.program, name) for name in KINDS} == KINDS
    learned = Model.load("encoder", device="cpu", positions="learned").program(3)
    assert "waves" not in charts_for(learned, "embedding.positions")
    # others are refused
    for kind, said in (("row", "tokens has no chart"), ("waves", "tokens has no chart of waves")):
        with pytest.raises(InputError, match=said):
            chart(kind, trace, view_of(trace, "tokens", LABELS), Place())


@pytest.mark.parametrize("where", ["encoder", "decoder", "attention"])
def test_every_offered_chart_can_be_made_from_the_last_cell(where: str) -> None:
    model = Model.load(where, device="cpu")
    trace = model.trace(ids=[1, 2, 3]) if model.config.vocab_size else model.trace()
    for name in (*trace.names, *trace.program.weights):
        axes = trace.program.axes(name)
        head = axes[0].size - 1 if len(axes) == 3 else 0
        view = view_of(trace, name, LABELS, head=head)
        for kind in charts_for(trace.program, name):
            drawn = chart(kind, trace, view, Place(head, view.rows.size - 1, view.columns.size - 1))
            assert drawn.title
            if isinstance(drawn, BarChart):
                assert len(drawn.labels) == len(drawn.values) > 0
                of_words = drawn.title.startswith("Nearest words")
                assert of_words == (drawn.marked is None)
                assert of_words or 0 <= (drawn.marked or 0) < len(drawn.values)
            elif isinstance(drawn, Histogram):
                assert len(drawn.edges) == len(drawn.counts) + 1
            else:
                assert all(len(series.x) == len(series.y) > 0 for series in drawn.series)
                assert drawn.x_label
                assert drawn.y_label
            held = dataclasses.asdict(drawn)
            numbers = [*held.get("values", ()), *held.get("edges", ()), *held.get("counts", ())]
            assert {type(number) for number in numbers} <= {int, float}


def test_curves_of_the_encoding_can_be_chosen() -> None:
    def labels(sinusoid: Sinusoid, dimensions: tuple[int, ...]) -> list[str]:
        return [series.label for series in positions.encoding_waves(sinusoid, 9, dimensions).series]

    curves = {
        False: ("sin 0, sin 2, sin 4", "cos 1, cos 3, cos 5"),
        True: ("sin 0, sin 1, sin 2", "cos 6, cos 7, cos 8"),
    }
    for halves, names in curves.items():
        sinusoid, large = (Sinusoid(width, halves=halves) for width in (12, 512))
        for cosines, said in zip((False, True), names, strict=True):
            assert ", ".join(labels(sinusoid, positions.first_dimensions(sinusoid, cosines=cosines))) == said
        assert positions.all_dimensions(sinusoid) == tuple(range(12))
        every = labels(large, positions.all_dimensions(large))
        assert len(every) == 32
        assert sum(label.startswith("sin") for label in every) == 16


def test_products_of_positions_by_their_distance() -> None:
    # of sines and cosines, the same for all pairs
    products = positions.by_distance(Sinusoid(32), large(9, 32)[0])
    (curve,) = products.series
    rates = 10000.0 ** (-2 * np.arange(16) / 32)
    assert curve.y == pytest.approx([float(np.cos(distance * rates).sum()) for distance in curve.x])
    assert curve.x[-1] > 9
    assert "the same for all pairs" in products.title
    # learned ones have a mean and ends
    trace = Model.load("encoder", device="cpu", positions="learned").trace(ids=[1, 2, 3, 4])
    products = chart("positions by distance", trace, view_of(trace, "embedding.positions", LABELS), Place())
    assert isinstance(products, LineChart)
    rows = np.asarray(trace["embedding.positions"], dtype=np.float64)
    mean, least, most = products.series
    assert mean.y[1] == pytest.approx(np.mean([rows[i] @ rows[i + 1] for i in range(3)]), rel=1e-5)
    assert least.y[1] <= mean.y[1] <= most.y[1]


def test_the_load_of_experts_is_a_chart_of_the_router_and_its_shares():
    trace = Model.load(REFERENCES / "mixtral", device="cpu").trace(ids=[5, 7, 9, 33])
    for name in ("decoder.0.feed_forward.router", "decoder.1.feed_forward.expert_weights"):
        assert {"expert load", "load of all layers"} <= set(charts_for(trace.program, name))
        view = view_of(trace, name, Labels())
        one, every = (chart(kind, trace, view, Place(0, 0, 1)) for kind in ("expert load", "load of all layers"))
        shares = [trace[f"decoder.{layer}.feed_forward.expert_weights"] > 0 for layer in (0, 1)]
        assert one.values == tuple(shares[int(name[8])].sum(axis=0).tolist())
        assert every.values == tuple(sum(each.sum(axis=0) for each in shares).tolist())
        assert one.marked == every.marked == 1
        assert "even load" in one.title
    assert "expert load" not in charts_for(trace.program, "decoder.0.output")


def test_the_nearest_words_of_a_token_have_the_largest_cosines(trace: Trace) -> None:
    view = view_of(trace, "embedding.tokens", LABELS)
    bars = chart("nearest words", trace, view, Place(row=1), word=lambda token: f"w{token}")
    assert isinstance(bars, BarChart)
    table = np.asarray(trace["embedding.tokens.weight"], dtype=np.float64)
    units = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosines = units @ units[2]
    cosines[2] = -np.inf
    best = np.argsort(-cosines)[: len(bars.labels)]
    assert bars.labels == tuple(f"w{token}" for token in best)
    assert bars.values == pytest.approx(cosines[best].tolist())
    assert bars.title.startswith("Nearest words of w2")


# Marks of an axis: round, evenly spaced, with 0

ENDS = st.floats(-1e12, 1e12, allow_nan=False)


MARKS = [
    (0.0, 1.0, 6, False, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    (-1.0, 1.0, 5, False, (-1.0, -0.5, 0.0, 0.5, 1.0)),
    (0.0, 3.0, 10, True, (0.0, 1.0, 2.0, 3.0)),
    (0.0, 0.9, 1, False, (0.0,)),
    (0.0, 4321.0, 5, True, (0.0, 1000.0, 2000.0, 3000.0, 4000.0)),
    (2.0, 2.0, 5, False, (2.0,)),
    (0.6, 0.9, 1, False, (0.8,)),
    (0.25, 0.5, 1, True, ()),
    (6.0, 9.0, 1, True, (8.0,)),
    (math.nan, 1.0, 5, False, ()),
    (0.0, math.inf, 5, False, ()),
]
TEXTS = {
    (0.0, 0.5, 1.0): ("0", "0.5", "1.0"),
    (-1e-5, 0.0, 1e-5): ("−1e-5", "0", "1e-5"),
    (0.0, 1000.0, 2000.0): ("0", "1,000", "2,000"),
    (0.0, 2e6): ("0", "2e6"),
    (): (),
}


def test_marks_and_their_texts():
    for low, high, most, whole, wanted in MARKS:
        assert ticks(low, high, most, whole=whole) == wanted
    assert {places: tick_texts(places) for places in TEXTS} == TEXTS


@given(ENDS, ENDS, st.integers(1, 40), st.booleans())
def test_marks_are_few_round_even_and_hold_zero(one, other, most, whole):
    low, high = sorted((one, other))
    marks = ticks(low, high, most, whole=whole)
    assert len(marks) <= most
    slack = 1e-6 * (high - low) + 1e-300
    assert all(low - slack <= place <= high + slack for place in marks)
    if whole:
        assert all(place == round(place) for place in marks)
    steps = [b - a for a, b in pairwise(marks)]
    if steps and steps[0] > 1e7 * np.spacing(max(abs(low), abs(high))):  # else they are even as far as numbers tell
        assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-6)
        digits = f"{steps[0]:.6e}".partition("e")[0].rstrip("0").rstrip(".")
        assert digits in ("1", "2", "5")
        assert not low <= 0 <= high or 0.0 in marks
    texts = tick_texts(marks)
    assert len(set(texts)) == len(marks)
