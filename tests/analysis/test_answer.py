"""The most likely tokens at a place: those of the trace, and of softmax(logits ÷ T)."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.effects import LOGITS
from tui_transformer.analysis.score import PROBABILITIES, likely_at
from tui_transformer.engine.edits import Edit
from tui_transformer.errors import UsageError
from tui_transformer.model import Model


@pytest.fixture(scope="module")
def trace():
    return Model.load("decoder").trace("the waves crashed")


def test_at_1_the_probabilities_are_those_of_the_trace(trace):
    words = likely_at(trace, 1, 3)
    shares = trace[PROBABILITIES][1]
    assert [each.token for each in words] == np.argsort(-shares, kind="stable")[:3].tolist()
    assert [each.probability for each in words] == shares[[each.token for each in words]].tolist()
    assert [each.logit for each in words] == trace[LOGITS][1][[each.token for each in words]].tolist()


@pytest.mark.parametrize("temperature", [0.25, 2.0, 100.0])
def test_at_any_other_they_are_those_of_the_logits_divided_by_it(trace, temperature):
    scaled = np.exp(trace[LOGITS][2].astype(float) / temperature)
    words = likely_at(trace, 2, 4, temperature)
    np.testing.assert_allclose(
        [each.probability for each in words], np.sort(scaled / scaled.sum())[::-1][:4], rtol=1e-9
    )
    assert [each.token for each in words] == [each.token for each in likely_at(trace, 2, 4)]


def test_at_0_the_largest_logit_takes_all_and_the_order_stays(trace):
    words = likely_at(trace, 0, 3, 0.0)
    assert [each.probability for each in words] == [1, 0, 0]
    assert [each.token for each in words] == [each.token for each in likely_at(trace, 0, 3)]


def test_edited_probabilities_are_seen_at_1(trace):
    edited = trace.edited([Edit(PROBABILITIES, (0, 4), 0.9)])
    assert likely_at(edited, 0, 1)[0].token == 4


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), float("inf")])
def test_a_temperature_that_cannot_be_is_refused(trace, temperature):
    with pytest.raises(UsageError, match="temperature"):
        likely_at(trace, 0, 1, temperature)
