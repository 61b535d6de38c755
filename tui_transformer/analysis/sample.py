"""Sample: evenly spaced rows of a matrix that is too large to be read whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CELLS = 1 << 22
"""The most cells that a measure reads of one matrix."""


def row_sample(rows: Sequence[int], columns: int, cells: int = CELLS, together: int = 1) -> tuple[range, ...]:
    """The rows (in rising order) as runs of neighbours; where they hold more than `cells`, evenly spaced ones.

    The first row is always there, and at least one row is taken however wide it is. `together`: so many neighbours are
    taken at each place, which are read faster.
    """
    limit = max(1, cells // max(columns, 1))
    picked = np.asarray(rows, dtype=np.int64)
    if len(picked) > limit:
        together = min(together, limit)
        groups = limit // together
        starts = len(picked) * np.arange(groups) // groups
        picked = picked[(starts[:, None] + np.arange(together)).ravel()]
    runs = np.split(picked, np.flatnonzero(np.diff(picked) > 1) + 1)
    return tuple(range(int(run[0]), int(run[-1]) + 1) for run in runs if run.size)
