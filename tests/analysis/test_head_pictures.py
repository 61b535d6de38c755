"""Small pictures of heads: shares of groups."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.head_measures import SIDE, largest, layer_measures, smaller
from tui_transformer.model import Model


def pictured(name: str, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """The pictures of a step, and its weights."""
    trace = Model.load(name, device="cpu", max_length=256).trace(ids=[i % 7 for i in range(tokens)])
    step = attentions(trace.program)[0]
    return layer_measures(trace, step, Reader()).pictures, trace[step.name]


def test_few_tokens_are_shown_as_they_are() -> None:
    pictures, weights = pictured("encoder", 9)
    np.testing.assert_array_equal(pictures, weights)


@pytest.mark.parametrize("tokens", [33, 64, 100])
def test_many_are_shares_of_groups_that_sum_to_one(tokens: int) -> None:
    pictures, weights = pictured("encoder", tokens)
    assert pictures.shape[1:] == (SIDE, SIDE)
    np.testing.assert_allclose(pictures.sum(axis=2), 1.0, rtol=1e-5)
    group = np.arange(tokens) * SIDE // tokens
    expected = weights[:, group == 3][:, :, group == 5].sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(pictures[:, 3, 5], expected, rtol=1e-5)


def test_what_a_mask_hides_is_blank() -> None:
    pictures, _ = pictured("decoder", 64)
    assert (np.isnan(pictures) == np.triu(np.ones((SIDE, SIDE), dtype=bool), 1)).all()


def test_a_smaller_picture_is_shares_again() -> None:
    pictures, _ = pictured("encoder", 20)
    small = smaller(pictures[0], 7, 6)
    assert small.shape == (7, 6)
    np.testing.assert_allclose(small.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(smaller(pictures[0], 20, 20), pictures[0])


def test_blank_cells_stay_blank_in_a_smaller_picture() -> None:
    pictures, _ = pictured("decoder", 8)
    assert (np.isnan(smaller(pictures[0], 4, 4)) == np.triu(np.ones((4, 4), dtype=bool), 1)).all()


def test_the_largest_cell_is_one_that_had_a_choice() -> None:
    pictures, _ = pictured("decoder", 5)
    assert largest(pictures) == pytest.approx(float(np.nanmax(pictures[:, 1:])))
    assert largest(pictures[:, :1]) == 1.0
