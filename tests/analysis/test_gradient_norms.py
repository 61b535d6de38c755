"""Norms of gradients, by weight, by layer and along the stream, and their bars."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.norms import group_of, layer_norms, norm, stream_norms, weight_norms
from tui_transformer.engine.gradient import gradients
from tui_transformer.model import Model
from tui_transformer.views.chart_data import GRADIENT_KINDS, MOST_BARS, gradient_chart


@pytest.fixture(scope="module")
def trace():
    return Model.load("decoder", dtype="float64", layers=3, norm="pre", bias=True).trace("the waves crashed")


@pytest.fixture(scope="module")
def computed(trace):
    return gradients(trace, [[2, 3, -1]]).values


def test_a_norm_is_the_root_of_the_sum_of_squares():
    assert norm(np.array([[3.0, 0.0], [0.0, -4.0]])) == 5.0
    assert norm(np.full(4, 1e20, dtype=np.float32)) == pytest.approx(2e20)


def test_every_weight_has_a_norm_in_the_order_of_the_forward_pass(trace, computed):
    norms = weight_norms(trace.program, computed)
    assert set(norms) == set(trace.program.weights)
    assert next(iter(norms)) == "embedding.tokens.weight"
    assert list(norms)[-1].startswith("output.logits")
    for name, size in norms.items():
        assert size == pytest.approx(float(np.linalg.norm(computed[name].ravel())))


def test_a_layer_is_all_its_weights_together(trace, computed):
    norms = layer_norms(trace.program, computed)
    assert list(norms) == ["embedding", "decoder.0", "decoder.1", "decoder.2", "decoder", "output"]
    parts = [float((computed[name] ** 2).sum()) for name in trace.program.weights if name.startswith("decoder.1.")]
    assert norms["decoder.1"] == pytest.approx(sum(parts) ** 0.5)
    assert sum(size**2 for size in norms.values()) == pytest.approx(
        sum(size**2 for size in weight_norms(trace.program, computed).values())
    )


def test_the_stream_is_followed_from_the_embedding_on(trace, computed):
    norms = stream_norms(trace.program, computed)
    assert next(iter(norms)) == "embedding.output"
    assert norms["embedding.output"] == pytest.approx(float(np.linalg.norm(computed["embedding.output"].ravel())))


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("encoder.11.self_attention.query.weight", "encoder.11"),
        ("embedding.tokens.weight", "embedding"),
        ("decoder.embedding.positions.weight", "decoder.embedding"),
        ("decoder.3.scale", "decoder.3"),
        ("decoder.norm.bias", "decoder"),
        ("output.logits.weight", "output"),
    ],
)
def test_a_weight_belongs_to_its_layer(name, group):
    assert group_of(name) == group


MARKED = {
    "gradient norms by layer": "decoder.1",
    "gradient norms by weight": None,  # a sum reads no weight
    "gradient norms along the stream": "1 self_attention.residual",
}


@pytest.mark.parametrize("kind", GRADIENT_KINDS)
def test_the_bar_of_the_step_is_marked(kind, trace, computed):
    chart = gradient_chart(kind, trace.program, computed, "decoder.1.self_attention.residual")
    assert chart.logarithmic
    assert len(chart.labels) == len(chart.values) <= MOST_BARS
    assert (None if chart.marked is None else chart.labels[chart.marked]) == MARKED[kind]


def test_of_many_weights_those_around_the_current_one_are_shown(trace, computed):
    name = "decoder.2.feed_forward.output.weight"
    chart = gradient_chart("gradient norms by weight", trace.program, computed, name)
    assert len(chart.labels) == MOST_BARS
    assert chart.labels[chart.marked] == "2 output.weight"
    assert chart.values[chart.marked] == pytest.approx(weight_norms(trace.program, computed)[name])
    assert f"of {len(trace.program.weights)}" in chart.title
