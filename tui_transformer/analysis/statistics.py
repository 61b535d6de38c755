"""Statistics: what a set of numbers is like, in a handful of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host


@dataclass(frozen=True)
class Statistics:
    """Measures of the unmasked values of an array; NaN where there are none.

    Attributes:
        count: Unmasked values, N.
        masked: Cells left out: −∞ (hidden by a mask), NaN and +∞.
        mean: Σ x ÷ N.
        deviation: Standard deviation √(Σ (x − mean)² ÷ N), of the whole population (no N − 1).
        low: The smallest value.
        high: The largest value.
        norm: L2 norm √(Σ x²) of all values as one vector.
        zeros: Share of values that are exactly 0.
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


def unmasked(values: Host) -> Host:
    """The finite values of an array as a float64 vector."""
    return values[np.isfinite(values)].astype(np.float64)
