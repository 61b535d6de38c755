"""A view of attention weights without some tokens."""

from __future__ import annotations

import numpy as np

from tui_transformer.model import Model
from tui_transformer.views.step_view import Labels, view_of
from tui_transformer.views.without_tokens import without_tokens

NAME = "encoder.0.self_attention.weights"


def test_hidden_rows_and_columns_are_blank_and_the_rest_sums_to_one() -> None:
    trace = Model.load("encoder", device="cpu").trace(ids=[3, 4, 5, 6])
    view = view_of(trace, NAME, Labels(), head=2)
    hidden = np.array([True, False, False, True])
    shown = without_tokens(view, hidden, hidden).window(range(4), range(4))
    assert np.isnan(shown[hidden]).all()
    assert np.isnan(shown[:, hidden]).all()
    left = trace[NAME][2][1:3, 1:3]
    np.testing.assert_allclose(shown[1:3, 1:3], left / left.sum(axis=1, keepdims=True), rtol=1e-6)


def test_a_window_is_a_part_of_the_whole() -> None:
    view = view_of(Model.load("encoder", device="cpu").trace(ids=[3, 4, 5, 6]), NAME, Labels())
    keys = np.array([True, False, False, False])
    found = without_tokens(view, np.zeros(4, dtype=bool), keys)
    np.testing.assert_array_equal(found.window(range(1, 3), range(2, 4)), found.window(range(4), range(4))[1:3, 2:4])
    assert (found.shape, found.rows, found.columns) == (view.shape, view.rows, view.columns)
