"""How far the values of a dump are from the right ones, and whether that is more than rounding explains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tui_transformer.diagnosis.dumps.precision import Precision
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index

HIDDEN = -5000.0
"""Where −∞ stands in a right program, a number up to this one stands for it: e^−5000 is 0 in every precision."""


@dataclass(frozen=True)
class Difference:
    """Two arrays of a shape.

    Attributes:
        largest: Largest |theirs − ours|; ∞ where one is infinite or NaN and the other is not.
        relative: The same ÷ the largest |ours|.
        rms: Root of the mean square of the difference.
        cosine: Of the angle between the two; 1 where they point the same way.
        divergence: Of probabilities, the mean over the rows of Σ ours · log(ours ÷ theirs), in nats.
        index: The cell of the largest difference.
        values: Theirs and ours there.
        beyond: Some cell differs by more than the tolerance.
    """

    largest: float = 0.0
    relative: float = 0.0
    rms: float = 0.0
    cosine: float = 1.0
    divergence: float | None = None
    index: Index = ()
    values: tuple[float, float] = (0.0, 0.0)
    beyond: bool = False


def compare(theirs: Host, ours: Host, counted: Host | None, tolerance: Host | float, *, shares: bool) -> Difference:
    """Compare two arrays of a shape.

    Args:
        theirs: Of the dump.
        ours: The right values; −∞ where a score is hidden.
        counted: True where cells are compared; None for all.
        tolerance: How far they may be apart, one number or one a cell.
        shares: Rows are probabilities.
    """
    gap = gaps(theirs, ours)
    if counted is not None:
        gap = np.where(counted, gap, 0.0)
    if not gap.size:
        return Difference()
    excess = np.where(np.isfinite(gap), gap - tolerance, gap)
    place = np.unravel_index(int(gap.argmax()), gap.shape)
    finite = np.isfinite(gap) & np.isfinite(ours) & (True if counted is None else counted)
    a, b = theirs[finite].astype(np.float64), ours[finite].astype(np.float64)
    size = float(np.abs(b).max()) if b.size else 0.0
    largest = float(gap[place])
    return Difference(
        largest,
        largest / size if size else (0.0 if largest == 0 else math.inf),
        float(np.sqrt(np.mean((a - b) ** 2))) if a.size else 0.0,
        _cosine(a, b),
        _divergence(theirs, ours, finite) if shares else None,
        tuple(int(i) for i in place),
        (float(theirs[place]), float(ours[place])),
        bool((excess > 0).any()),
    )


def gaps(theirs: Host, ours: Host) -> Host:
    """|theirs − ours|; 0 where both hide a score or are NaN, ∞ where one alone is infinite or NaN."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(theirs - ours)
        same = stands_for_infinity(theirs, ours) | (theirs == ours) | (np.isnan(theirs) & np.isnan(ours))
    gap = np.where(same, 0.0, gap)
    measured: Host = np.where(np.isnan(gap), np.inf, gap)
    return measured


def stands_for_infinity(theirs: Host, ours: Host) -> Host:
    """True where a score that is hidden by −∞ is −∞ or a number that gives the same softmax."""
    hidden: Host = np.isneginf(ours) & (theirs <= HIDDEN)
    return hidden


def tolerance_of(precision: Precision, theirs: Host, noise: float) -> Host:
    """How far cells may be apart: the precision of the dump, and noise."""
    return precision.of(theirs) + noise


def _cosine(a: Host, b: Host) -> float:
    """Of the angle between two arrays; 1 where both are 0."""
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / lengths, -1.0, 1.0)) if lengths else float(not (a.any() or b.any()))


def _divergence(theirs: Host, ours: Host, finite: Host) -> float:
    """Mean of Σ p log(p ÷ q) over the rows, p ours; q is kept from 0."""
    p = np.where(finite, np.maximum(ours, 0.0), 0.0)
    q = np.maximum(theirs, np.finfo(np.float32).tiny)
    with np.errstate(all="ignore"):
        terms = np.where(p > 0, p * np.log(p / q), 0.0)
    rows = max(1, terms.size // max(1, terms.shape[-1]))
    return float(terms.sum() / rows)
