"""Statistics: what a set of numbers is like, in a handful of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host


@dataclass(frozen=True)
class Statistics:
    """Measures of the N unmasked values of an array, NaN where there are none.

    Masked are −∞ (hidden by a mask), NaN and +∞. Mean: Σ x ÷ N. Deviation: √(Σ (x − mean)² ÷ N), of the whole
    population (no N − 1). Norm: √(Σ x²). `zeros`: the share of values that are exactly 0.
    """

    count: int
    masked: int
    mean: float
    deviation: float
    low: float
    high: float
    norm: float
    zeros: float


def statistics(values: Host) -> Statistics:
    """The statistics of an array of any shape, summed in float64."""
    kept = unmasked(values)
    masked = values.size - kept.size
    if not kept.size:
        return Statistics(0, masked, *[math.nan] * 6)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation, norm = kept.mean(), kept.std(), np.linalg.norm(kept)
    zeros = 1.0 - np.count_nonzero(kept) / kept.size
    numbers = (mean, deviation, kept.min(), kept.max(), norm, zeros)
    return Statistics(kept.size, masked, *map(float, numbers))


def means_of(values: Host, counted: Host) -> tuple[float, ...]:
    """The mean of the counted cells of every row, in float64; NaN where none is."""
    sums = np.where(counted, values, 0.0).sum(axis=1, dtype=np.float64)
    counts = counted.sum(axis=1)
    return tuple(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0).tolist())


def unmasked(values: Host) -> Host:
    """The finite values of an array as a float64 vector."""
    return values[np.isfinite(values)].astype(np.float64)


MOST_BINS = 40


def histogram(values: Host) -> tuple[Host, Host]:
    """Counts and edges (one more than counts) of the finite values of an array of any shape.

    ⌈√N⌉ bins of equal width from the smallest to the largest value (the square-root rule), at most `MOST_BINS`. A bin
    holds its left edge and not its right one; the last bin holds both. Equal values fill one bin around them; where
    nothing is finite there is one empty bin from 0 to 1.
    """
    kept = unmasked(values)
    low, high = (float(kept.min()), float(kept.max())) if kept.size else (0.0, 1.0)
    if low == high:
        reach = abs(low) / 2 or 0.5
        edges = np.array([low - reach, high + reach])
    else:
        share = np.linspace(0.0, 1.0, (min(MOST_BINS, math.ceil(math.sqrt(kept.size))) or 1) + 1)
        # Weighing the ends rather than adding steps to `low` keeps `high - low` from overflowing; neighbouring edges
        # that fall on one number (values a few roundings apart) are one edge.
        edges = np.unique(low * (1.0 - share) + high * share)
    counts = np.bincount(np.searchsorted(edges[1:-1], kept, side="right"), minlength=len(edges) - 1)
    return counts, edges


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
