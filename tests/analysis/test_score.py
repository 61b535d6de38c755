"""The score of a text: by the loss of training, by hand, and at temperatures."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.analysis.score import score
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.gradient import cross_entropy
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

TARGETS = (2, 3, -1)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Model.load("decoder", dtype="float64").trace(ids=[1, 2, 3])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_mean_is_the_loss_that_training_lessens(trace: Trace, smoothing: float) -> None:
    targets = np.array([TARGETS])
    loss, _ = cross_entropy(numpy_backend("float64"), trace["output.logits"][None].copy(), targets, smoothing)
    scored = score(trace, TARGETS, smoothing=smoothing)
    assert scored.cross_entropy == pytest.approx(loss.mean, abs=1e-12)


def test_every_token_by_hand(trace: Trace) -> None:
    scored = score(trace, TARGETS, temperature=0.5)
    logits = trace["output.logits"] / 0.5
    for token, position, target in zip(scored.tokens, (0, 1), (2, 3), strict=True):
        shares = np.exp(logits[position]) / np.exp(logits[position]).sum()
        assert (token.position, token.token) == (position, target)
        assert token.probability == pytest.approx(shares[target])
        assert token.rank == 1 + sum(shares > shares[target])
    assert scored.log_probability == pytest.approx(sum(math.log(token.probability) for token in scored.tokens))
    assert scored.perplexity == pytest.approx(math.exp(-scored.log_probability / 2))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_a_temperature_that_cannot_be_is_refused(trace: Trace, temperature: float) -> None:
    with pytest.raises(UsageError, match="temperature"):
        score(trace, TARGETS, temperature=temperature)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, math.nan])
def test_a_smoothing_that_cannot_be_is_refused(trace: Trace, smoothing: float) -> None:
    with pytest.raises(UsageError, match="smoothing"):
        score(trace, TARGETS, smoothing=smoothing)


def test_a_text_without_a_predicted_token_is_refused(trace: Trace) -> None:
    with pytest.raises(InputError, match="no token is predicted"):
        score(trace, (-1, -1, -1))
