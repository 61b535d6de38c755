"""Statistics and norms: of arrays, of the stream, of gradients; which rows are read."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import in_float64

from tui_transformer.analysis.metrics import log_shares
from tui_transformer.analysis.statistics import (
    MOST_BINS,
    group_of,
    histogram,
    layer_norms,
    norm,
    residual_norms,
    row_norms,
    row_sample,
    statistics,
    stream_norms,
    streams,
    weight_norms,
)
from tui_transformer.engine.axis import Axis
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.ops import Add, Given, LayerNorm
from tui_transformer.engine.program import Builder
from tui_transformer.model import Model
from tui_transformer.views.chart_data import GRADIENT_KINDS, MOST_BARS, gradient_chart


# Statistics and histograms of arrays with known numbers
def test_statistics_are_those_of_the_whole_population_without_masked_cells() -> None:
    numbers = statistics(np.array([[0.0, 3.0], [4.0, -3.0]], dtype=np.float32))
    assert (numbers.count, numbers.masked) == (4, 0)
    assert (numbers.mean, numbers.low, numbers.high) == (1.0, -3.0, 4.0)
    assert numbers.deviation == pytest.approx(math.sqrt(30 / 4))
    assert numbers.norm == pytest.approx(math.sqrt(34))
    assert numbers.zeros == 0.25
    numbers = statistics(np.array([1.0, -math.inf, math.nan, 3.0, math.inf]))
    assert (numbers.count, numbers.masked, numbers.mean, numbers.low, numbers.high) == (2, 3, 2.0, 1.0, 3.0)
    # nothing
    numbers = statistics(np.full((2, 2), -np.inf))
    assert (numbers.count, numbers.masked) == (0, 4)
    assert all(
        map(math.isnan, (numbers.mean, numbers.deviation, numbers.low, numbers.high, numbers.norm, numbers.zeros))
    )
    # sums in float64
    values = np.full(1 << 20, 0.1, dtype=np.float32)
    assert statistics(values).mean == pytest.approx(float(np.float32(0.1)), rel=1e-12)
    assert statistics(np.array([3e38, 3e38], dtype=np.float32)).norm == pytest.approx(3e38 * math.sqrt(2), rel=1e-6)
    # whole numbers
    numbers = statistics(np.array([1, 2, 3, 0]))
    assert (numbers.mean, numbers.zeros) == (1.5, 0.25)


def test_counts_agree_with_numpy_and_few_values_have_few_bins() -> None:
    for size in (1, 2, 8, 64, 10_000):
        values = np.random.default_rng(size).normal(size=size)
        values[::3] = -np.inf if size > 2 else values[::3]
        kept = values[np.isfinite(values)]
        counts, edges = histogram(values)
        assert counts.sum() == kept.size
        assert counts.tolist() == np.histogram(kept, bins=edges)[0].tolist()
    for size, bins in ((2, 2), (8, 3), (64, 8), (1_600, 40), (100_000, MOST_BINS)):
        assert len(histogram(np.arange(size))[0]) == bins
    for value in (0.0, 1.0, -7.5, 1e300, 1e-300):
        counts, (low, high) = histogram(np.full(9, value))
        assert counts.tolist() == [9]
        assert low < value < high
    for values in ([1.0, np.nextafter(1.0, 2.0)] * 50, [-1.7e308, 1.7e308, 0.0]):
        counts, edges = histogram(np.array(values))
        assert np.isfinite(edges).all()
        assert (edges[1:] > edges[:-1]).all()
        assert counts.sum() == len(values)
    # known values
    counts, edges = histogram(np.array([0.0, 1.0, 2.0, 3.0]))
    assert edges.tolist() == [0.0, 1.5, 3.0]
    assert counts.tolist() == [2, 2]
    counts, edges = histogram(np.array([0.0, 1.0, 1.0, 2.0]))
    assert edges.tolist() == [0.0, 1.0, 2.0]
    assert counts.tolist() == [1, 3]
    counts, edges = histogram(np.full(3, -np.inf))
    assert (counts.tolist(), edges.tolist()) == ([0], [0.0, 1.0])


# Which rows of a large matrix are read
def test_rows_are_evenly_spaced_where_not_all_fit_and_runs_where_they_are_neighbours() -> None:
    assert row_sample(range(8), columns=10, cells=80) == (range(8),)
    assert row_sample(range(100), columns=10, cells=40) == (range(1), range(25, 26), range(50, 51), range(75, 76))
    assert row_sample([0, 1, 4, 5, 6, 9], columns=1) == (range(2), range(4, 7), range(9, 10))
    assert row_sample(range(3), columns=1_000, cells=10) == (range(1),)


# The logarithm of shares, of any array of logits along its last axis
def test_shares_add_up_along_the_last_axis_and_large_logits_overflow_nothing() -> None:
    for shape in ((5,), (3, 5), (2, 3, 5)):
        logits = np.random.default_rng(2).normal(0, 9, shape).astype(np.float32)
        shares = np.exp(log_shares(logits))
        assert shares.dtype == np.float64
        np.testing.assert_allclose(shares.sum(axis=-1), np.ones(shape[:-1]), rtol=1e-12)
        np.testing.assert_allclose(
            shares / shares[..., :1], np.exp(logits - logits[..., :1].astype(np.float64)), rtol=1e-6
        )
    np.testing.assert_allclose(log_shares(np.array([1e4, 1e4])), np.log([0.5, 0.5]))


# The residual stream: which steps are on it, and how long its vectors are
def stream_of(architecture: str, **sizes: object) -> tuple[str, ...]:
    (stream,) = streams(Model.load(architecture, device="cpu", **sizes).program(3))
    return stream


def test_the_stream_has_sums_and_norms_as_they_are_placed_from_the_embedding_on() -> None:
    stream = stream_of("encoder", layers=2, norm="post")
    parts = [f"{sublayer}.{part}" for sublayer in ("self_attention", "feed_forward") for part in ("residual", "norm")]
    assert stream == ("embedding.output", *(f"encoder.{layer}.{part}" for layer in range(2) for part in parts))
    sums = [f"decoder.{layer}.{part}.residual" for layer in range(2) for part in ("self_attention", "feed_forward")]
    assert stream_of("decoder", layers=2, norm="pre") == ("embedding.output", *sums, "decoder.norm")
    assert stream_of("encoder", positions="none")[0] == "embedding.tokens"
    model = Model.load("attention", device="cpu")
    assert streams(model.program(3)) == ()
    assert residual_norms(model.trace()) == ()


def test_every_stack_has_its_own_stream() -> None:
    build = Builder()
    tokens, model = Axis("token", 2, "tokens"), Axis("model", 4)
    for prefix in ("", "decoder."):
        stack = build.within(f"{prefix}embedding")
        x = stack("output", Given(), build.given(f"{prefix}states", tokens, model))
        sublayer = build.within(f"{prefix or 'encoder.'}0.feed_forward")
        out = sublayer("output", Given(), x)
        total = sublayer("residual", Add(), x, out, role="residual")
        sublayer("norm", LayerNorm(1e-5), total, sublayer.weight("g", model), sublayer.weight("b", model), role="norm")
    assert streams(build.program()) == (
        ("embedding.output", "encoder.0.feed_forward.residual", "encoder.0.feed_forward.norm"),
        ("decoder.embedding.output", "decoder.0.feed_forward.residual", "decoder.0.feed_forward.norm"),
    )


def test_norms_are_means_over_tokens_by_pythagoras_without_padding() -> None:
    trace = in_float64("encoder", layers=2).trace(ids=[1, 2, 3])
    (stack,) = residual_norms(trace)
    assert stack.stack == "encoder"
    assert stack.norms == pytest.approx([np.linalg.norm(trace[step], axis=1).mean() for step in stack.steps])
    assert stack.norms[-1] == pytest.approx(math.sqrt(8), rel=1e-3)  # a fresh layer norm's rows have length √d
    assert row_norms(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)).tolist() == [5.0, 0.0]
    assert row_norms(np.array([[3e38, 0.0]], dtype=np.float32))[0] == pytest.approx(3e38)
    # padding
    model = in_float64("encoder", pad_id=0)
    (short,), (long,) = (residual_norms(model.trace(ids=ids)) for ids in ([1, 2, 3], [1, 2, 3, 0, 0]))
    assert long.norms == pytest.approx(short.norms)
    (stack,) = residual_norms(Model.load("encoder", device="cpu", pad_id=0).trace(ids=[0, 0]))
    assert np.isfinite(stack.norms).all()


# Norms of gradients, by weight, by layer and along the stream, and their bars
@pytest.fixture(scope="module")
def trace():
    return in_float64("decoder", layers=3, norm="pre", bias=True).trace("the waves crashed")


@pytest.fixture(scope="module")
def computed(trace):
    return gradients(trace, [[2, 3, -1]]).values


def test_every_weight_has_a_norm_and_a_layer_to_which_it_belongs_that_of_all_together(trace, computed):
    assert norm(np.array([[3.0, 0.0], [0.0, -4.0]])) == 5.0
    assert norm(np.full(4, 1e20, dtype=np.float32)) == pytest.approx(2e20)
    norms = weight_norms(trace.program, computed)
    assert set(norms) == set(trace.program.weights)
    assert next(iter(norms)) == "embedding.tokens.weight"
    assert list(norms)[-1].startswith("output.logits")
    for name, size in norms.items():
        assert size == pytest.approx(float(np.linalg.norm(computed[name].ravel())))
    norms = layer_norms(trace.program, computed)
    assert list(norms) == ["embedding", "decoder.0", "decoder.1", "decoder.2", "decoder", "output"]
    parts = [float((computed[name] ** 2).sum()) for name in trace.program.weights if name.startswith("decoder.1.")]
    assert norms["decoder.1"] == pytest.approx(sum(parts) ** 0.5)
    assert sum(size**2 for size in norms.values()) == pytest.approx(
        sum(size**2 for size in weight_norms(trace.program, computed).values())
    )
    norms = stream_norms(trace.program, computed)
    assert next(iter(norms)) == "embedding.output"
    assert norms["embedding.output"] == pytest.approx(float(np.linalg.norm(computed["embedding.output"].ravel())))
    # layers
    for name, group in (
        ("encoder.11.self_attention.query.weight", "encoder.11"),
        ("embedding.tokens.weight", "embedding"),
        ("decoder.embedding.positions.weight", "decoder.embedding"),
        ("decoder.3.scale", "decoder.3"),
        ("decoder.norm.bias", "decoder"),
        ("output.logits.weight", "output"),
    ):
        assert group_of(name) == group


MARKED = {
    "gradient norms by layer": "decoder.1",
    "gradient norms by weight": None,  # a sum reads no weight
    "gradient norms along the stream": "1 self_attention.residual",
}


def test_the_bar_of_the_step_is_marked_among_those_around_it(trace, computed):
    for kind in GRADIENT_KINDS:
        chart = gradient_chart(kind, trace.program, computed, "decoder.1.self_attention.residual")
        assert chart.logarithmic
        assert len(chart.labels) == len(chart.values) <= MOST_BARS
        assert (None if chart.marked is None else chart.labels[chart.marked]) == MARKED[kind]
    name = "decoder.2.feed_forward.output.weight"
    chart = gradient_chart("gradient norms by weight", trace.program, computed, name)
    assert len(chart.labels) == MOST_BARS
    assert chart.labels[chart.marked] == "2 output.weight"
    assert chart.values[chart.marked] == pytest.approx(weight_norms(trace.program, computed)[name])
    assert f"of {len(trace.program.weights)}" in chart.title
