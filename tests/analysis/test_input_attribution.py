"""Gradients of metrics and cells, gradient × input and integrated gradients, beside differences and sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.input_attribution import (
    gradient_times_input,
    gradients_of,
    gradients_of_cell,
    integrated_gradients,
)
from tui_transformer.analysis.metrics import METRICS, Metric
from tui_transformer.engine.changes import Add, Set
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.gradient_explanation import explain_gradient, gradient_formula
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 5, 3, 6]
LAST = range(3, 4)
START = "embedding.output"
METRIC = Metric("difference", (1, 4))


@pytest.fixture(scope="module")
def trace():
    sizes = {"layers": 2, "heads": 2, "d_model": 8, "d_ff": 12, "norm": "pre", "activation": "gelu", "seed": 4}
    return Model.load("decoder", device="cpu", dtype="float64", **sizes).trace(ids=IDS)


def by_differences(trace, measure, name, step=1e-5):
    """∂f/∂x of every cell, by central differences."""
    values = np.zeros(trace.program.shape(name))
    for index in np.ndindex(values.shape):
        way = np.zeros_like(values)
        way[index] = step
        high, low = (measure(trace.edited([Add(name, sign * way)])) for sign in (1, -1))
        values[index] = (high - low) / (2 * step)
    return values


@pytest.mark.parametrize("name", ["logit", "log-probability", "difference", "loss"])
@pytest.mark.parametrize("step", [START, "decoder.1.self_attention.weights"])
def test_the_gradient_of_a_metric_is_how_it_moves(trace, name, step):
    metric = Metric(name, (1, 4)[: METRICS[name].tokens])
    computed = gradients_of(trace, metric, LAST)
    assert computed.loss == metric.measure(trace, trace, LAST)
    wanted = by_differences(trace, lambda other: metric.measure(other, trace, LAST), step)
    np.testing.assert_allclose(computed.values[step], wanted, atol=1e-8)


def test_the_gradient_of_a_cell_is_how_it_moves(trace):
    name, index = "decoder.1.self_attention.scaled", (1, 3, 2)
    computed = gradients_of_cell(trace, "1.self_attention.scaled", index)
    assert computed.loss == trace[name][index]
    np.testing.assert_allclose(
        computed.values[START], by_differences(trace, lambda other: other[name][index], START), atol=1e-8
    )
    assert "output.logits" not in computed.values
    assert computed.values[name].sum() == 1
    with pytest.raises(InputError, match="has no cell"):
        gradients_of_cell(trace, name, (1, 3, 9))
    with pytest.raises(InputError, match="depends on no weight"):
        gradients_of_cell(trace, "tokens", (0,))


def test_the_loss_on_targets_has_the_gradients_of_the_loss(trace):
    targets = (5, 3, 6, -1)
    computed, wanted = gradients_of(trace, Metric("loss", (), targets), LAST), gradients(trace, [targets])
    assert computed.loss == pytest.approx(wanted.loss, abs=1e-12)
    assert computed.values.keys() == wanted.values.keys()
    for name, value in wanted.values.items():
        np.testing.assert_allclose(computed.values[name], value, atol=1e-12)


def test_a_batch_has_the_gradient_of_one_sentence(trace):
    both = Model.load("decoder", device="cpu", dtype="float64", layers=1, d_model=8).trace(ids=[IDS, [1, 2, 3, 4]])
    computed = gradients_of(both, METRIC, LAST, item=1)
    assert (computed.values[START][0] == 0).all()
    alone = Model.load("decoder", device="cpu", dtype="float64", layers=1, d_model=8).trace(ids=[1, 2, 3, 4])
    np.testing.assert_allclose(computed.values[START][1], gradients_of(alone, METRIC, LAST).values[START], atol=1e-12)


def test_every_cell_of_the_gradient_of_a_metric_is_explained(trace):
    computed = gradients_of(trace, METRIC, LAST)
    assert gradient_formula(trace, computed, "output.logits") == "1 at the first token, −1 at the second"
    for name, index in (("output.logits", (3, 4)), ("decoder.1.self_attention.output", (2, 5)), (START, (1, 1))):
        explained = explain_gradient(trace, computed, (), name, index)
        assert explained.recomputed == pytest.approx(explained.stored, abs=1e-12)


def test_gradient_times_input_is_that_product(trace):
    attribution = gradient_times_input(trace, METRIC, LAST)
    wanted = by_differences(trace, lambda other: METRIC.measure(other, trace, LAST), START) * trace[START]
    np.testing.assert_allclose(attribution.cells, wanted, atol=1e-8)
    np.testing.assert_allclose(attribution.rows, wanted.sum(axis=1), atol=1e-7)
    assert attribution.remainder is None


@pytest.mark.parametrize("baseline", [np.cos(np.arange(8)), np.linspace(-1, 1, 8)])
def test_integrated_gradients_are_the_mean_gradient_and_complete(trace, baseline):
    attribution = integrated_gradients(trace, METRIC, LAST, baseline=baseline, points=128)
    x = trace[START]
    start = np.broadcast_to(baseline, x.shape)
    assert attribution.baseline == pytest.approx(METRIC.measure(trace.edited([Set(START, start)]), trace, LAST))
    assert attribution.remainder == pytest.approx(0, abs=1e-4)
    assert attribution.cells.sum() + attribution.remainder == pytest.approx(
        attribution.value - attribution.baseline, abs=1e-12
    )
    places = (np.arange(200) + 0.5) / 200  # the midpoints of a plain sum in α, crowded near the baseline
    total = np.zeros_like(x)
    for place in places:
        edited = trace.edited([Set(START, start + place**3 * (x - start))])
        total += 3 * place**2 / 200 * gradients_of(edited, METRIC, LAST).values[START]
    np.testing.assert_allclose(attribution.cells, (x - start) * total, atol=2e-3)


def test_the_divergence_is_from_the_sentence_as_it_is(trace):
    attribution = integrated_gradients(trace, Metric("divergence"), LAST, baseline=np.linspace(-1, 1, 8), points=128)
    assert attribution.value == 0
    assert attribution.baseline > 0
    assert attribution.remainder == pytest.approx(0, abs=1e-4)


def test_what_is_no_input_is_refused(trace):
    with pytest.raises(InputError, match="is no input of one sentence"):
        gradient_times_input(trace, METRIC, LAST, "decoder.0.self_attention.weights")
    with pytest.raises(InputError, match="does not fit"):
        integrated_gradients(trace, METRIC, LAST, baseline=np.ones(3))
    with pytest.raises(InputError, match="does not depend on"):
        gradient_times_input(trace, Metric("logit", (1,)), LAST, "output.probabilities")
