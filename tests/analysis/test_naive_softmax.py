"""Softmax as it is written and as it is computed."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.naive_softmax import breaking_point, softmaxes

ROW = np.array([1.0, 2.0, 4.0], np.float32)


def test_both_are_the_same_as_long_as_nothing_overflows() -> None:
    both = softmaxes(ROW, 80.0)
    assert not both.breaks
    np.testing.assert_allclose(both.naive, np.exp(ROW) / np.exp(ROW).sum(), rtol=1e-5)
    np.testing.assert_allclose(both.safe, both.naive, rtol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_naive_one_breaks_where_the_exponential_overflows_and_not_before(kind: type) -> None:
    row = ROW.astype(kind)
    raised = breaking_point(row)
    assert raised is not None
    assert softmaxes(row, raised).breaks
    assert not softmaxes(row, raised - 1).breaks
    assert np.isnan(softmaxes(row, raised).naive).any()
    np.testing.assert_allclose(softmaxes(row, raised).safe, softmaxes(row).safe, rtol=1e-5)


def test_it_breaks_below_too_where_every_exponential_is_zero() -> None:
    both = softmaxes(ROW, -200.0)
    assert both.breaks
    assert not both.powers.any()
    np.testing.assert_allclose(both.safe, softmaxes(ROW).safe, rtol=1e-4)


def test_masked_scores_stay_without_a_share() -> None:
    row = np.array([0.0, -np.inf], np.float32)
    raised = breaking_point(row)
    assert raised == 89.0
    both = softmaxes(row, raised)
    assert both.safe.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "row", [[1e6, 0.0], [3e9, -3e9], [1e30], [-1e38, -np.inf], [0.5, 1e20, np.finfo(np.float32).max]]
)
def test_a_row_of_large_scores_breaks_by_a_number_that_it_can_hold(row: list[float]) -> None:
    scores = np.array(row, np.float32)
    raised = breaking_point(scores)
    assert raised is not None
    assert softmaxes(scores, raised).breaks


@pytest.mark.parametrize("row", [[-np.inf], [-np.inf, -np.inf], [np.nan], [np.inf, 0.0], [np.nan, 1.0]])
def test_a_row_without_shares_cannot_be_broken(row: list[float]) -> None:
    assert breaking_point(np.array(row, np.float32)) is None
