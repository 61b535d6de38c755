"""Induction: how much of its attention a head gives to what came after earlier occurrences of the same token.

Σ_j A_ij over the keys j > 0 whose token before, j − 1, is the token of query i and comes earlier (the prefix-matching
score of Olsson et al. 2022, "In-context Learning and Induction Heads"). Only queries whose token came before have it,
so a text without repetition has none. Such a head copies: in `A B … A` it finds B.
"""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.heads.measure import Measure, weight_to_all
from tui_transformer.engine.backend import Host


def _weights(rows: Rows) -> Host:
    return weight_to_all(rows, _after_the_same(rows))


def _after_the_same(rows: Rows) -> Host:
    """Queries × keys, true where the key comes right after an earlier occurrence of the query's token."""
    ids = rows.tokens.ids
    before = np.concatenate([[-1], ids[:-1]])
    own = np.where(rows.own >= 0, ids[rows.own], -1)
    same: Host = (before == own[:, None]) & (own >= 0)[:, None] & (np.arange(len(ids)) <= rows.own[:, None])
    return same


INDUCTION = Measure(
    name="induction",
    title="induction",
    unit="",
    formula="Σ_j A_ij, token j−1 = token i, j ≤ i",
    rows=_weights,
)
