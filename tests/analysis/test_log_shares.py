"""The logarithm of shares, of any array of logits along its last axis."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.metrics import log_shares


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_shares_add_up_along_the_last_axis(shape: tuple[int, ...]) -> None:
    logits = np.random.default_rng(2).normal(0, 9, shape).astype(np.float32)
    shares = np.exp(log_shares(logits))
    assert shares.dtype == np.float64
    np.testing.assert_allclose(shares.sum(axis=-1), np.ones(shape[:-1]), rtol=1e-12)
    np.testing.assert_allclose(shares / shares[..., :1], np.exp(logits - logits[..., :1].astype(np.float64)), rtol=1e-6)


def test_large_logits_overflow_nothing() -> None:
    np.testing.assert_allclose(log_shares(np.array([1e4, 1e4])), np.log([0.5, 0.5]))
