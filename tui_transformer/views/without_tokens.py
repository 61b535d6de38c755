"""Attention as it is shared among the tokens that are left when some are hidden, in the same rows and columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tui_transformer.analysis.renormalized import renormalized
from tui_transformer.engine.backend import Host
from tui_transformer.views.view import Values, View


def without_tokens(view: View, queries: Host, keys: Host) -> View:
    """A view of attention weights in which the rows of hidden queries and the columns of hidden keys are NaN.

    The rest of each row sums to 1 again. Every cell keeps its place, so that a cursor need not be moved.

    Args:
        view: Of one head of `….weights`.
        queries: True for the queries that are hidden.
        keys: True for the keys that are hidden.
    """

    def window(rows: range, columns: range) -> Values:
        whole = renormalized(view.window(rows, range(view.columns.size)), keys)
        hidden = queries[rows.start : rows.stop, None] | keys[None, :]
        return np.where(hidden, np.nan, whole)[:, columns.start : columns.stop].astype(whole.dtype)

    return replace(view, window=window)
