"""Measures of heads: against plain formulas, masks, padding, hidden tokens, samples, and traces that keep nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tui_transformer.analysis.attentions import Reader, attentions, own_keys
from tui_transformer.analysis.head_measures import LayerMeasures, head_measures, layer_measures
from tui_transformer.analysis.measures import HEAD_MEASURES
from tui_transformer.analysis.tokens import Hidden
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

SENTENCE = "the day began, and the day was good."


def load(name: str = "encoder", **sizes: object) -> Model:
    return Model.load(name, device="cpu", dtype="float64", vocabulary="english", layers=2, **sizes)


def measured(trace: Trace, reader: Reader) -> list[LayerMeasures]:
    return list(head_measures(trace, attentions(trace.program), reader))


def test_every_measure_is_the_mean_of_its_rows_where_all_keys_are_visible() -> None:
    model = load()
    trace = model.trace(SENTENCE)
    ids = trace["tokens"].tolist()
    separating = [model.word(token) in ",." for token in ids]
    for layer in measured(trace, Reader(model.vocabulary)):
        weights = trace[layer.attention.name]
        n = weights.shape[1]
        assert layer.values["entropy"] == pytest.approx(-(weights * np.log2(weights)).sum(axis=-1).mean(axis=-1))
        previous = [[head[i, i - 1] for i in range(1, n)] for head in weights]
        assert layer.values["previous"] == pytest.approx(np.mean(previous, axis=1))
        assert layer.values["first"] == pytest.approx(weights[:, :, 0].mean(axis=1))
        assert layer.values["itself"] == pytest.approx([np.diag(head).mean() for head in weights])
        assert layer.values["separators"] == pytest.approx(weights[:, :, separating].sum(axis=-1).mean(axis=-1))
        assert (layer.queries, layer.real, layer.sampled) == (n, n, False)


def test_induction_counts_what_followed_earlier_occurrences() -> None:
    trace = load("decoder").trace(ids=[105, 106, 107, 105, 106, 108])
    layer = measured(trace, Reader())[1]
    weights = trace[layer.attention.name]
    # Token 3 is token 0 again, which 1 followed; token 4 is token 1 again, which 2 followed.
    assert layer.values["induction"] == pytest.approx((weights[:, 3, 1] + weights[:, 4, 2]) / 2)


def test_a_text_without_repetition_has_no_induction() -> None:
    layer = measured(load("decoder").trace(ids=[105, 106, 107, 108]), Reader())[0]
    assert all(math.isnan(value) for value in layer.values["induction"])


def test_causal_queries_with_one_visible_key_do_not_count() -> None:
    trace = load("decoder").trace(ids=[105, 106, 107, 108])
    layer = measured(trace, Reader())[0]
    weights = trace[layer.attention.name]
    assert layer.values["first"] == pytest.approx(weights[:, 1:, 0].mean(axis=1))
    assert layer.values["itself"] == pytest.approx([np.diag(head)[1:].mean() for head in weights])
    assert layer.values["entropy"] == pytest.approx(
        -np.where(weights > 0, weights * np.log2(np.maximum(weights, 1e-300)), 0)[:, 2:].sum(axis=-1).mean(axis=-1)
    )


def test_padding_changes_no_measure() -> None:
    model = load()
    ids = [105, 106, 107, 108]
    padded = measured(model.trace(ids=[*ids, *[model.config.pad_id] * 3]), Reader(model.vocabulary))
    for layer, expected in zip(padded, measured(model.trace(ids=ids), Reader(model.vocabulary)), strict=True):
        assert layer.real == 4
        for measure in HEAD_MEASURES:
            assert layer.values[measure.name] == pytest.approx(expected.values[measure.name], nan_ok=True)


def test_cross_attention_has_no_own_token() -> None:
    model = load("encoder-decoder")
    trace = model.trace("the day", decoder_text="the day was")
    step = attentions(trace.program, "decoder cross-attention")[0]
    layer = layer_measures(trace, step, Reader(model.vocabulary))
    assert all(math.isnan(value) for name in ("previous", "itself", "induction") for value in layer.values[name])
    assert layer.values["first"] == pytest.approx(trace[step.name][:, :, 0].mean(axis=1))


def test_the_first_token_can_be_hidden_and_the_rest_renormalised() -> None:
    model = load()
    trace = model.trace(SENTENCE)
    layer = measured(trace, Reader(model.vocabulary, Hidden(first=True)))[0]
    weights = trace[layer.attention.name][:, 1:, 1:]
    weights = weights / weights.sum(axis=-1, keepdims=True)
    assert layer.values["itself"] == pytest.approx([np.diag(head).mean() for head in weights])
    assert layer.values["entropy"] == pytest.approx(-(weights * np.log2(weights)).sum(axis=-1).mean(axis=-1))
    assert all(math.isnan(value) for value in layer.values["first"])
    assert np.isnan(layer.pictures[:, 0]).all()
    assert np.isnan(layer.pictures[:, :, 0]).all()
    np.testing.assert_allclose(layer.pictures[:, 1:, 1:], weights, rtol=1e-6)


def test_a_large_matrix_is_read_in_part() -> None:
    trace = load("decoder", max_length=200).trace(ids=[105 + i % 3 for i in range(200)])
    step = attentions(trace.program)[0]
    layer = layer_measures(trace, step, Reader(), most=8 * 200 * 64)
    assert (layer.queries, layer.real, layer.sampled) == (64, 200, True)
    whole = layer_measures(trace, step, Reader())
    assert layer.values["itself"] == pytest.approx(whole.values["itself"], rel=0.3)
    assert not np.isnan(layer.pictures[:, :, 0]).any()


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_a_trace_that_keeps_nothing_gives_the_same_measures(name: str) -> None:
    model = load(name)
    kept, dropped = (
        measured(model.trace(SENTENCE, budget=budget), Reader(model.vocabulary)) for budget in (1 << 30, 0)
    )
    for one, other in zip(kept, dropped, strict=True):
        for measure in HEAD_MEASURES:
            assert one.values[measure.name] == pytest.approx(other.values[measure.name], nan_ok=True)
        np.testing.assert_allclose(one.pictures, other.pictures)


def test_edits_reach_the_measures() -> None:

    model = load()
    trace = model.trace(SENTENCE, budget=0)
    name = attentions(trace.program)[1].name
    edited = trace.edited([Edit("encoder.0.feed_forward.norm", (0, 0), 40.0)])
    before, after = (measured(each, Reader(model.vocabulary)) for each in (trace, edited))
    assert after[0].values == pytest.approx(before[0].values)
    weights = edited[name]
    assert after[1].values["first"] == pytest.approx(weights[:, :, 0].mean(axis=1))
    assert after[1].values["first"] != pytest.approx(before[1].values["first"])


def test_the_last_keys_are_the_queries_where_earlier_ones_were_kept() -> None:
    step = next(iter(attentions(load("decoder").trace(ids=[105, 106, 107]).program)))
    longer = replace(step, keys=replace(step.keys, size=8), queries=replace(step.queries, size=3))
    assert own_keys(longer, np.arange(3)).tolist() == [5, 6, 7]
