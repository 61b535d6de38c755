"""Numbers that were rounded to fewer bits on the way or do not fit them (float16, bfloat16, TF32), and dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, Change, Segment, cause, changing, instead, result_of
from tui_transformer.diagnosis.dumps.dump import BFLOAT16, FLOAT16, Precision
from tui_transformer.diagnosis.reference_values import largest
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.ops import Add, Context, Linear, Project, Scores
from tui_transformer.engine.program import Step
from tui_transformer.records import dataclass, replace

FEWEST = 12
"""Cells of which it can be told that they have few bits, or that not all zeros are there by chance."""

FINER = 0.1
"""The numbers of a dump are known to so small a part of a rounding, or nothing is said."""

SPREAD = 8.0
"""Roundings are granted so many times what two random ones made."""

PRINTED = 2.0**-17
"""A number that is printed with the six digits of `cout` is as near as this to the one that it was."""

EXPLAINED = 0.5
"""What is left of the difference when the same roundings are made, at most."""

PRODUCTS = (Linear, Project, Scores, Context)


def _kept_bits(x: Host, dropped: int) -> Host:
    """float32 without so many of its last bits, rounded to the nearest, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + (1 << (dropped - 1)) - 1 + ((bits >> dropped) & 1)) >> dropped << dropped
    values: Host = rounded.astype(np.uint32).view(np.float32).astype(np.float64)
    return np.where(np.isfinite(x), values, x)


@dataclass(frozen=True)
class Few:
    """A format of few bits, under the name of its cause; `products`: only operands of products are rounded to it."""

    name: str
    precision: Precision
    rounded: Callable[[Host], Host]
    products: bool = False


FORMATS = (
    Few("bfloat16", BFLOAT16, lambda x: _kept_bits(x, 16)),
    Few("float16", FLOAT16, lambda x: x.astype(np.float16).astype(np.float64)),
    Few("tf32", Precision("TF32", 2.0**-11, unit=2.0**-11), lambda x: _kept_bits(x, 13), products=True),
)
"""Those of the fewest bits first: their numbers are numbers of the others too."""

ROUNDED = {few.name: few.precision for few in FORMATS if not few.products}
"""Causes that all numbers of a program may have, and what is granted to look for others behind them."""


@np.errstate(all="ignore")
def rounded(segment: Segment, theirs: Host, precision: Precision, counted: Host | None) -> Cause | None:
    """The format of few bits that explains what is between a step and its right value; None where none does.

    Numbers that are known to fewer bits than a format has can still show that they did not fit it.
    """
    counted = np.ones(theirs.shape, dtype=np.bool_) if counted is None else counted
    lost = bool((counted & np.isfinite(segment.value()) & ~np.isfinite(theirs)).any())
    for few in FORMATS:
        cells = counted & np.isfinite(theirs) & (theirs != 0)
        sharp = cells & (precision.of(theirs) < FINER * few.precision.unit * np.abs(theirs))
        finer = sharp.sum() >= FEWEST and precision.unit < few.precision.unit
        if few.precision is FLOAT16 if lost else finer:
            found = _of_format(segment, np.where(counted, theirs, 0.0), few, counted, lost=lost)
            if found is not None:
                return found
    return None


def _of_format(segment: Segment, theirs: Host, few: Few, counted: Host, *, lost: bool) -> Cause | None:
    """The cause, where all numbers are of the format, or the same roundings or overflows come with it."""

    def within(ours: Host) -> bool:  # as near as roundings are, and the same cells are infinite or NaN
        near = (np.abs(theirs - ours) <= limit) | (theirs == ours) | (np.isnan(theirs) & np.isnan(ours))
        return bool((near | ~counted).all())

    def left(ours: Host) -> float:
        gap = np.abs(theirs - ours)
        finite = gap[counted & np.isfinite(gap)]
        return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0

    right, key = segment.value(), "float16-overflow" if lost else few.name
    near = np.abs(theirs - few.rounded(theirs)) <= PRINTED * np.abs(theirs)
    of_it = bool((near | ~np.isfinite(theirs)).all())
    limit = SPREAD * segment.noise(few.precision.unit) + few.precision.of(theirs)
    if not few.products and of_it and within(right):
        return cause(few.name, ())
    for change in _roundings(segment, few):
        ours = segment.value(change)
        if within(ours) and (lost or left(ours) <= EXPLAINED * left(right)):
            return cause(key, change)
    return None


def _roundings(segment: Segment, few: Few) -> Iterator[Change]:
    """The weights alone, the result alone, every step, both; of products, their operands."""

    def operands(step: Step, x: Array, y: Array, *bias: Array) -> Array:
        return result_of(step, few.rounded(x), few.rounded(y), *bias)

    def result(step: Step, *inputs: Array) -> Array:
        return few.rounded(result_of(step, *inputs))

    steps = [step for step in segment.steps if not step.op.integer]
    if few.products:
        yield changing(instead(step, operands) for step in steps if isinstance(step.op, PRODUCTS))
        return
    weights = dict.fromkeys(segment.weights, few.rounded)
    every = changing(instead(step, result) for step in steps)
    yield from (Change(weights=weights), changing(instead(step, result) for step in steps[-1:]), every)
    yield replace(every, weights=weights)


def dropped(segment: Segment, theirs: Host, known: Host | None) -> Cause | None:
    """Dropout that was left on: some cells are 0 and all others larger by one factor (Srivastava et al. 2014).

    A sum is looked at less what enters the sublayer, since what is added may have been dropped.
    """
    step, ours = segment.steps[-1], segment.value()
    share = _share(theirs, ours, known)
    if share is None and isinstance(step.op, Add):
        rest = segment.value(changing([instead(step, lambda _, x, *__: x)]))
        share = _share(theirs - rest, ours - rest, known)
    if share is None:
        return None
    return cause("dropout-on", (), cells=in_percent(share, ".0%"), kept=1 - share)


def _share(theirs: Host, right: Host, known: Host | None) -> float | None:
    """The share of cells that are 0, where all others are right · 1 / (1 − share) for some drop rate."""
    with np.errstate(all="ignore"):
        size = np.abs(right)
        counted = np.isfinite(right) & np.isfinite(theirs) & (size > 1e-3 * largest(size))
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
