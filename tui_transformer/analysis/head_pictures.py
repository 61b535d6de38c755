"""Head pictures: the attention of a head in a few cells, whatever the number of tokens.

Neighbouring queries and keys are taken together: a cell is Σ_j A_ij over the keys of a group, averaged over the queries
of a group. So a picture is attention again: the shares that a group of queries gives to groups of keys, every row
summing to 1. Where there are few tokens, a group is one token and the cell its weight.
"""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.attentions import Attention, Rows
from tui_transformer.engine.backend import Host

SIDE = 32
"""The most rows and columns of a picture."""


class Pictures:
    """The pictures of the heads of one attention step, made from some of its queries."""

    def __init__(self, step: Attention) -> None:
        self._queries, self._keys = step.queries.size, step.keys.size
        height, width = min(SIDE, self._queries), min(SIDE, self._keys)
        self._starts = [-(-self._keys * column // width) for column in range(width)]
        self._sums = np.zeros((step.heads, height, width))
        self._counts = np.zeros(height)
        self._visible = np.zeros((height, width), dtype=np.bool_)

    def add(self, rows: Rows) -> None:
        """Count some more queries."""
        height = len(self._counts)
        group = np.arange(height)[:, None] == rows.queries * height // self._queries  # groups × queries
        self._sums += group.astype(np.float32) @ np.add.reduceat(rows.weights, self._starts, axis=2)
        self._counts += group.sum(axis=1)
        visible = np.logical_or.reduceat(rows.visible, self._starts, axis=1)
        self._visible |= group.astype(np.float32) @ visible > 0

    def pictures(self) -> Host:
        """Heads × rows × columns; NaN where no query of a group may look at any key of a group."""
        counts = np.maximum(self._counts, 1.0)[:, None]
        return np.asarray(np.where(self._visible, self._sums / counts, np.nan).astype(np.float32))


def largest(pictures: Host) -> float:
    """The largest cell of pictures (… × rows × columns) in rows that have a choice of several columns; 1 for none."""
    seen = ~np.isnan(pictures)
    free = seen & (seen.sum(axis=-1, keepdims=True) > 1)
    return float(np.max(pictures, initial=0.0, where=free)) or 1.0


def smaller(picture: Host, height: int, width: int) -> Host:
    """A picture with at most so many rows and columns: columns added up, rows averaged, in groups."""
    rows, columns = picture.shape
    if columns > width:
        picture = _grouped(picture, width, axis=1)
    if rows <= height:
        return picture
    counts = np.add.reduceat(~np.isnan(picture).all(axis=1), _starts(rows, height))
    return np.asarray(_grouped(picture, height, axis=0) / np.maximum(counts, 1)[:, None])


def _grouped(picture: Host, size: int, axis: int) -> Host:
    """Sums of groups; NaN where all of a group is NaN."""
    starts = _starts(picture.shape[axis], size)
    total = np.add.reduceat(np.nan_to_num(picture), starts, axis=axis)
    empty = np.logical_and.reduceat(np.isnan(picture), starts, axis=axis)
    return np.asarray(np.where(empty, np.nan, total))


def _starts(count: int, size: int) -> list[int]:
    return [count * group // size for group in range(size)]
