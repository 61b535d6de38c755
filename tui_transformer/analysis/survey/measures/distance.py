"""Attention by distance: the mean weight of a key that lies so many tokens before the query.

For every query i and every group D of distances, the mean of A_ij over the keys j that it may look at with i − j in D
(Vig & Belinkov 2019, "Analyzing the Structure of Attention in a Transformer Language Model", §4.3, for the distance of
attention). Groups: 0, 1, 2, 3, 4..7, 8..15 … before, and -1, -2, -3, -7..-4 … for keys behind the query. Cross
attention has no distance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.survey.measures.measure import QueryMeasure
from tui_transformer.engine.backend import Host

ALONE = 4
"""Distances below this one are groups of their own."""


def _columns(rows: Rows) -> dict[str, Host]:
    keys = rows.visible.shape[1]
    if not len(rows.own) or rows.own[0] < 0:
        return {}
    weights = _running(rows.weights)
    visible = _running(rows.visible)
    return {f"distance:{_written(near, far)}": _mean(rows, weights, visible, near, far) for near, far in groups(keys)}


def groups(keys: int) -> Iterator[tuple[int, int]]:
    """The groups of distances among so many keys: nearest and farthest, negative for keys behind the query."""
    before = [(distance, distance) for distance in range(min(ALONE, keys))]
    nearest = ALONE
    while nearest < keys:
        before.append((nearest, 2 * nearest - 1))
        nearest *= 2
    yield from ((-near, -far) for near, far in reversed(before[1:]))
    yield from before


def _mean(rows: Rows, weights: Host, visible: Host, near: int, far: int) -> Host:
    """Heads × queries: the mean weight of the keys of a group; NaN where a query may look at none of them."""
    keys, line = rows.visible.shape[1], np.arange(len(rows.own))
    first = np.clip(rows.own - max(near, far), 0, keys)
    end = np.clip(rows.own - min(near, far) + 1, 0, keys)
    total = weights[:, line, end] - weights[:, line, first]
    count = visible[line, end] - visible[line, first]
    mean: Host = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def _running(values: Host) -> Host:
    """Sums up to each key along the last axis, 0 in front, in float64."""
    kind = np.int64 if values.dtype == np.bool_ else np.float64
    sums: Host = np.zeros((*values.shape[:-1], values.shape[-1] + 1), kind)
    np.cumsum(values, axis=-1, dtype=kind, out=sums[..., 1:])
    return sums


def _written(near: int, far: int) -> str:
    low, high = sorted((near, far))
    return str(low) if low == high else f"{low}..{high}"


DISTANCE = QueryMeasure("distance", "mean weight of a key by its distance before the query", "", _columns)
