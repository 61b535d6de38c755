"""Results of a diagnosis in sentences: which step, how far, whether its inputs agree, and what to mend."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tui_transformer.diagnosis.causes import Cause
from tui_transformer.diagnosis.comparison import Difference, gaps
from tui_transformer.diagnosis.factors import times_said
from tui_transformer.diagnosis.matching import Entry
from tui_transformer.engine.backend import Host


def said(step: str, difference: Difference, inputs: str, cause: Cause | None, hint: str) -> str:
    """One line about the first step that is wrong.

    Args:
        step: Its name.
        difference: How far it is from the right one.
        inputs: What is known of its inputs.
        cause: The mistake that explains it.
        hint: What else can be said where none does.
    """
    first = f"{step} differs first ({_size(difference)}{', ' if inputs else ''}{inputs})."
    if cause is not None:
        return f"{first} It matches {cause.says}."
    return f"{first} No known mistake explains it{f': {hint}' if hint else ''}."


def _size(difference: Difference) -> str:
    """How far the two are apart, or which of them has no number there."""
    if np.isfinite(difference.largest):
        return f"relative {difference.relative:.2g}"
    if any(map(np.isnan, difference.values)):
        return "one side is not a number"
    theirs, ours = (f"{value:.4g}".replace("-", "−").replace("inf", "∞") for value in difference.values)
    return f"{theirs} where the model has {ours}"


def inputs_said(relative: float | None, *, known: bool) -> str:
    """How well the inputs agree; "" where the step is computed from token IDs alone.

    Args:
        relative: The largest relative difference of what is before the step in the dump; None where nothing is.
        known: Its inputs are there whole, or token IDs alone.
    """
    if relative is None:
        return "" if known else "nothing that it is computed from is in the dump"
    what = "inputs agree" if known else "what is in the dump of its inputs agrees"
    return what if relative == 0 else f"{what} to {relative:.0e}"


def hint(entry: Entry, ours: Host, counted: Host | None, sizes: Mapping[str, int]) -> str:
    """Patterns in the numbers of a step that no mistake explains; a factor is said by the sizes of the model."""
    theirs = entry.array
    kept = np.ones(ours.shape, dtype=np.bool_) if counted is None else counted
    if np.isnan(theirs[kept]).any():
        return f"{int(np.isnan(theirs[kept]).sum())} cells are NaN"
    finite = kept & np.isfinite(ours) & np.isfinite(theirs)
    a, b = theirs[finite], ours[finite]
    if a.size and not a.any():
        return "every cell is 0"
    return _factor(a, b, sizes) or _places(theirs, ours, kept)


def _factor(a: Host, b: Host, sizes: Mapping[str, int]) -> str:
    """One factor between all cells."""
    size = float(b @ b)
    if not size:
        return ""
    factor = float(a @ b) / size
    rest = float(np.abs(a - factor * b).max())
    if rest > 1e-4 * float(np.abs(a).max() or 1.0):
        shift = float(np.mean(a - b))
        same = float(np.abs(a - b - shift).max()) < 1e-4 * float(np.abs(a).max() or 1.0)
        return f"every cell is {shift:.6g} too large" if same else ""
    return "" if math.isclose(factor, 1.0, rel_tol=1e-4) else f"every cell {times_said(factor, sizes)}"


def _places(theirs: Host, ours: Host, kept: Host) -> str:
    """Rows or heads that alone differ."""
    gap = np.where(kept, gaps(theirs, ours), 0.0)
    worst = float(gap[np.isfinite(gap)].max(initial=0.0))
    wrong = (gap > 1e-3 * worst) | np.isinf(gap)
    for axis, name in ((-2, "row"), (-1, "column"), (-3, "head")):
        if gap.ndim + axis < 1:
            continue
        others = tuple(i for i in range(gap.ndim) if i != gap.ndim + axis)
        places = np.flatnonzero(wrong.any(axis=others))
        if 0 < places.size <= 2 < gap.shape[axis]:
            return f"only {name} {' and '.join(map(str, places))} differs"
    return ""
