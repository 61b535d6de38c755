"""Means over a data set, beside sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.effects import effects, means
from tui_transformer.engine.edits import Patch
from tui_transformer.engine.targets import every
from tui_transformer.errors import InputError
from tui_transformer.model import Model

CONTEXT, OUTPUT = "decoder.0.self_attention.context", "decoder.0.feed_forward.residual"
ROWS = [[5, 6, 7, 8], [9, 10]]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("copy", dtype="float64", device="cpu")


def test_every_real_token_counts_alike_alone_or_in_a_batch(model):
    traces = [model.trace(ids=row) for row in ROWS]
    of_rows = means(traces, [CONTEXT, "0.output"])
    joined = np.concatenate([trace[CONTEXT] for trace in traces], axis=1)
    np.testing.assert_allclose(of_rows[CONTEXT], joined.mean(axis=1, keepdims=True), atol=1e-12)
    states = np.concatenate([trace[OUTPUT] for trace in traces])
    np.testing.assert_allclose(of_rows[OUTPUT], states.mean(axis=0, keepdims=True), atol=1e-12)
    batch = model.trace(ids=[ROWS[0], [*ROWS[1], 0, 0]], mask=[[1] * 4, [1, 1, 0, 0]])
    again = means([batch], [CONTEXT, OUTPUT])
    assert all(np.allclose(again[name], of_rows[name], atol=1e-12) for name in of_rows)


def test_an_ablation_to_the_mean_of_a_data_set_sets_the_part_to_it(model):
    trace = model.trace(ids=[5, 6, 7, 8, 5])
    heads = every(trace.program, "head")
    names = [name for target in heads for name in target.steps(trace.program)]
    of_rows = means([model.trace(ids=row) for row in ROWS], names)
    for target, effect in list(effects(trace, heads, means=of_rows))[::3]:
        name, head = target.steps(trace.program)[0], target.number or 0
        values = np.broadcast_to(of_rows[name][head], trace[name][head].shape)
        region = (range(head, head + 1), *(range(size) for size in values.shape))
        edited = trace.edited([Patch.of(name, values[None], region)])
        old, new = (
            each["output.logits"][4] - np.logaddexp.reduce(each["output.logits"][4]) for each in (trace, edited)
        )
        assert effect.divergence == pytest.approx((np.exp(old) * (old - new)).sum(), abs=1e-10)


def test_what_has_no_mean_is_refused(model):
    with pytest.raises(InputError, match="no sentence"):
        means([], [CONTEXT])
    with pytest.raises(InputError, match="of different sentences"):
        means([model.trace(ids=row) for row in ROWS], ["0.self_attention.weights"])
    with pytest.raises(InputError, match="no row for each token"):
        means([model.trace(ids=ROWS[0])], ["0.self_attention.query.weight"])
    trace = model.trace(ids=ROWS[0])
    with pytest.raises(InputError, match="there is no mean of"):
        every(trace.program)[0].edits(trace.program, means={})
