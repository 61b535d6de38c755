"""Dropout in a program for training, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.learning.loop import inserted, kept, with_dropout
from tui_transformer.model import Model

IDS = [[2, 5, 3, 6, 4], [3, 3, 2, 7, 6]]
TARGETS = [[5, -1, 6, 4, 7], [2, 4, -1, -1, 5]]


def model(name: str = "decoder", **sizes: object) -> Model:
    settings = {"d_model": 8, "heads": 2, "d_ff": 6, "norm": "pre", "bias": True, "dtype": "float64"} | sizes
    return Model.load(name, device="cpu", **settings)


def test_what_is_kept_is_scaled_so_that_the_mean_stays():
    mask = kept((400, 500), 0.1, (1, 2, 3))
    assert mask.mean() == pytest.approx(0.9, abs=0.003)


def test_dropout_stands_behind_the_embedding_and_every_sublayer():
    program = inserted(model("encoder-decoder").program(3, 3), 0.1)
    names = [step.name for step in program.steps if step.name.endswith("dropout")]
    assert names == [
        "embedding.dropout",
        "encoder.0.self_attention.dropout",
        "encoder.0.feed_forward.dropout",
        "decoder.embedding.dropout",
        "decoder.0.self_attention.dropout",
        "decoder.0.cross_attention.dropout",
        "decoder.0.feed_forward.dropout",
    ]
    assert program.step("encoder.0.self_attention.residual").inputs == (
        "embedding.dropout",
        "encoder.0.self_attention.dropout",
    )


@pytest.mark.parametrize("positions", ["sinusoidal", "none"])
def test_the_embedding_is_dropped_under_either_of_its_names(positions):
    program = inserted(model(positions=positions).program(3), 0.1)
    assert "embedding.dropout" in program.by_name
    assert program.step("decoder.0.self_attention.norm").inputs[0] == "embedding.dropout"


def test_a_model_that_is_looked_at_has_no_dropout():
    trace = model().trace(ids=IDS)
    assert not [name for name in trace if "dropout" in name]
    assert with_dropout(trace, 0.0, 1, 1) is trace


def test_the_cells_that_are_dropped_depend_on_seed_batch_and_place():
    trace = model().trace(ids=IDS)
    name = "decoder.0.feed_forward.dropout"
    first, again, other_batch, other_seed = (
        with_dropout(trace, 0.5, seed, batch)[name] for seed, batch in ((1, 1), (1, 1), (1, 2), (2, 1))
    )
    assert np.array_equal(first, again)
    for other in (other_batch, other_seed):
        assert not np.array_equal(first == 0, other == 0)
    places = with_dropout(trace, 0.5, 1, 1)
    assert not np.array_equal(places["embedding.dropout"] == 0, first == 0)


def test_what_is_kept_is_divided_by_its_share():
    trace = with_dropout(model().trace(ids=IDS), 0.25, 1, 1)
    before, after = trace["decoder.0.feed_forward.output"], trace["decoder.0.feed_forward.dropout"]
    assert set(np.unique(np.round(after / before, 12))) == {0.0, round(1 / 0.75, 12)}


def test_a_gradient_through_dropout_is_the_slope_of_the_loss():
    trace = with_dropout(model().trace(ids=IDS), 0.3, 1, 1)
    computed = gradients(trace, TARGETS).values
    for name, index in (("decoder.0.self_attention.query.weight", (3, 5)), ("embedding.tokens.weight", (3, 2))):
        value, width = float(trace[name][index]), 1e-5
        low, high = (
            gradients(trace.edited([Edit(name, index, value + move)]), TARGETS).loss for move in (-width, width)
        )
        assert computed[name][index] == pytest.approx((high - low) / (2 * width), rel=1e-5)
