"""Dropout that was left on: random cells are 0 and the others are too large (Srivastava et al. 2014)."""

from __future__ import annotations

import numpy as np

from tui_transformer.diagnosis.causes.cause import instead
from tui_transformer.diagnosis.evaluation import Change, Segment
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.ops import Add
from tui_transformer.engine.program import Step

FEWEST = 12
"""Cells below which zeros may be there by chance."""

NAME = "dropout-on"


def dropped(segment: Segment, theirs: Host, known: Host | None) -> str | None:
    """The message where some cells are 0 and all others larger by one factor; None where they are not.

    A sum is looked at less what enters the sublayer, since what is added may have been dropped.
    """
    step = segment.steps[-1]
    right = segment.value()
    share = _share(theirs, right, known)
    if share is None and isinstance(step.op, Add):
        share = _share_of_addends(segment, step, theirs, right, known)
    if share is None:
        return None
    dropped = in_percent(share, ".0%")
    return f"when {dropped} of the cells are dropped and the others divided by {1 - share:.2g}: turn dropout off"


def _share_of_addends(segment: Segment, step: Step, theirs: Host, right: Host, known: Host | None) -> float | None:
    nothing = Change({step.name: instead(step, lambda *parts: parts[0])})
    rest = segment.value(nothing)
    return _share(theirs - rest, right - rest, known)


def _share(theirs: Host, right: Host, known: Host | None) -> float | None:
    """The share of cells that are 0, where all others are right · 1 / (1 − share) for some drop rate."""
    with np.errstate(all="ignore"):
        size = np.abs(right)
        counted = np.isfinite(right) & np.isfinite(theirs) & (size > 1e-3 * _largest(size))
        counted = counted if known is None else counted & known
        if counted.sum() < FEWEST:
            return None
        ratio = (theirs / right)[counted]
    zero = np.abs(ratio) < 1e-3
    if not 0 < zero.sum() < zero.size:
        return None
    factor = float(np.median(ratio[~zero]))
    same = np.abs(ratio[~zero] - factor) < 2e-3 * factor
    if factor < 1.001 or not same.all():
        return None
    rate = 1 - 1 / factor
    spread = 5 * np.sqrt(rate * (1 - rate) / zero.size) + 1 / zero.size
    return rate if abs(zero.mean() - rate) < spread else None


def _largest(size: Host) -> float:
    finite = size[np.isfinite(size)]
    return float(finite.max()) if finite.size else 0.0
