"""Histogram: how many values lie in each of equally wide intervals."""

from __future__ import annotations

import math

import numpy as np

from tui_transformer.analysis.statistics import unmasked
from tui_transformer.engine.backend import Host

MOST_BINS = 40


def histogram(values: Host) -> tuple[Host, Host]:
    """Counts and edges (one more than counts) of the finite values of an array of any shape.

    ⌈√N⌉ bins of equal width from the smallest to the largest value (the square-root rule), at most `MOST_BINS`. A bin
    holds its left edge and not its right one; the last bin holds both. Equal values fill one bin around them; where
    nothing is finite there is one empty bin from 0 to 1.
    """
    kept = unmasked(values)
    edges = _edges(kept)
    bins = len(edges) - 1
    counts = np.bincount(np.searchsorted(edges[1:-1], kept, side="right"), minlength=bins)
    return counts, edges


def _edges(kept: Host) -> Host:
    if not kept.size:
        return np.array([0.0, 1.0])
    low, high = float(kept.min()), float(kept.max())
    if low == high:
        reach = abs(low) / 2 or 0.5
        return np.array([low - reach, high + reach])
    bins = min(MOST_BINS, math.ceil(math.sqrt(kept.size)))
    share = np.linspace(0.0, 1.0, bins + 1)
    # Weighing the ends rather than adding steps to `low` keeps `high - low` from overflowing; neighbouring edges that
    # fall on one number (values a few roundings apart) are one edge.
    return np.unique(low * (1.0 - share) + high * share)
