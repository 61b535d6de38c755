"""What a second model loses is found where it was put."""

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
    found = loss_of(traced(), traced())
    assert [each.name for each in found.layers] == ["decoder.0.output", "decoder.1.output"]
    assert all((each.error, each.cosine) == (0.0, pytest.approx(1.0)) for each in found.layers)
    assert all((each.error, each.divergence) == (0.0, 0.0) for each in found.heads)
    assert (found.logits.divergence, found.logits.agreeing, found.logits.positions) == (0.0, 6, 6)


def test_the_head_that_lost_all_comes_first():
    first = traced()
    second = first.edited(parse("head:decoder.1.self_attention:2").edits(first.program))
    found = loss_of(first, second)
    assert (found.heads[0].attention, found.heads[0].head) == ("decoder.1.self_attention", 2)
    assert [each.error for each in found.heads[:2]] == [pytest.approx(1.0), 0.0]
    assert found.layers[0].error == 0.0 < found.layers[1].error


def test_the_divergence_of_the_answers_is_that_of_the_formula():
    first = traced()
    second = first.edited(parse("head:decoder.0.self_attention:1").edits(first.program))
    found = loss_of(first, second).logits
    p, q = (each["output.probabilities"] for each in (first, second))
    rows = (p * np.log(p / q)).sum(axis=1)
    assert found.divergence == pytest.approx(rows.mean())
    assert found.worst == (int(rows.argmax()), pytest.approx(rows.max()))
    assert found.agreeing == (p.argmax(1) == q.argmax(1)).sum()
    assert found.likeliest == (p[-1].argmax(), q[-1].argmax())


def test_parts_that_only_one_has_are_left_out():
    other = Model.load(REFERENCES / "bert", dtype="float64").trace(ids=IDS)
    found = loss_of(traced(), other)
    assert (found.layers, found.heads, found.logits) == ((), (), None)
    own = loss_of(other, other)
    assert own.heads
    assert own.layers
