"""Losses of a second model are measured where they were put."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.analysis.two_models import loss_of
from tui_transformer.engine.targets import parse
from tui_transformer.model import Model

IDS = [5, 9, 2, 7, 11, 3]


def traced(family="llama"):
    return Model.load(REFERENCES / family, dtype="float64").trace(ids=IDS)


def test_a_model_loses_nothing_beside_itself():
    loss = loss_of(traced(), traced())
    assert [each.name for each in loss.layers] == ["decoder.0.output", "decoder.1.output"]
    assert all((each.error, each.cosine) == (0.0, pytest.approx(1.0)) for each in loss.layers)
    assert all((each.error, each.divergence) == (0.0, 0.0) for each in loss.heads)
    assert (loss.logits.divergence, loss.logits.agreeing, loss.logits.positions) == (0.0, 6, 6)


def test_the_head_that_lost_all_comes_first():
    first = traced()
    second = first.edited(parse("head:decoder.1.self_attention:2").edits(first.program))
    loss = loss_of(first, second)
    assert (loss.heads[0].attention, loss.heads[0].head) == ("decoder.1.self_attention", 2)
    assert [each.error for each in loss.heads[:2]] == [pytest.approx(1.0), 0.0]
    assert loss.layers[0].error == 0.0 < loss.layers[1].error


def test_the_divergence_of_the_answers_is_that_of_the_formula():
    first = traced()
    second = first.edited(parse("head:decoder.0.self_attention:1").edits(first.program))
    loss = loss_of(first, second).logits
    p, q = (each["output.probabilities"] for each in (first, second))
    rows = (p * np.log(p / q)).sum(axis=1)
    assert loss.divergence == pytest.approx(rows.mean())
    assert loss.worst == (int(rows.argmax()), pytest.approx(rows.max()))
    assert loss.agreeing == (p.argmax(1) == q.argmax(1)).sum()
    assert loss.likeliest == (p[-1].argmax(), q[-1].argmax())


def test_parts_that_only_one_has_are_left_out():
    other = Model.load(REFERENCES / "bert", dtype="float64").trace(ids=IDS)
    loss = loss_of(traced(), other)
    assert (loss.layers, loss.heads, loss.logits) == ((), (), None)
    own = loss_of(other, other)
    assert own.heads
    assert own.layers
