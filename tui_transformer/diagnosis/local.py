"""A step of a dump beside what is computed from the inputs that the dump has, and how far roundings move that.

What no change of the program explains may be roundings to fewer bits (float16, bfloat16, TF32), or dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, Change, Segment, cause, changing, instead, result_of
from tui_transformer.diagnosis.dumps.dump import BFLOAT16, FLOAT16, FLOAT32_UNIT, Precision
from tui_transformer.diagnosis.matching import Entry
from tui_transformer.diagnosis.reference_values import (
    HIDDEN,
    LEAST,
    Difference,
    Reference,
    compare,
    exceeds,
    gaps,
    largest,
    stands_for_infinity,
)
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.ops import Add, Context, Linear, Project, Scores
from tui_transformer.engine.program import Step
from tui_transformer.records import dataclass, replace

SPREAD = 8.0
"""Roundings are granted so many times what two random ones made."""

FAR, FAR_SUMMED = (8.0, 2.0), (24.0, 8.0)
"""Roundings move a cell by up to so many times their root mean square, and that is as many times one rounding, at most;
the second where products may be summed in few bits, too, as in float16."""

MEDIAN = 0.67
"""The median of |x| where the root mean square is 1."""

Given = Mapping[str, tuple[Host, Precision]]
"""Values of steps, and how exact they are."""

SCALED = 8.0
"""A factor that all cells have in common is found beyond so many times what roundings make of it by chance."""


@dataclass(frozen=True, eq=False)
class Roundings:
    """How far a program of few bits may be from the right values: in every cell, and in what all cells have in common.

    Attributes:
        unit: Largest relative error of one operation.
        spread: How far the roundings of every step on the way move each cell.
        usual: How many times as much most cells are off, as sums of few bits are; at least 1.
        counted: True where cells are compared; None for all.
    """

    unit: float
    spread: Host
    usual: float
    counted: Host | None

    @classmethod
    def of(cls, theirs: Host, segment: Segment, unit: float, counted: Host | None) -> Roundings:
        """Those of a step in a dump."""
        plain = cls(unit, segment.spread(unit), 1.0, counted)
        ours = segment.value()
        gap, cells = plain._cells(theirs, ours)
        if not gap.size:
            return plain
        rest = np.abs(gap - plain.factor(theirs, ours)[0] * ours[cells]) / plain.spread[cells]
        usual = min(max(1.0, float(np.median(rest)) / MEDIAN), plain._far[1])
        return replace(plain, usual=usual)

    @property
    def noise(self) -> Host:
        """How far each cell may be off."""
        noise: Host = self._far[0] * self.usual * self.spread
        return noise

    def scaled(self, theirs: Host, ours: Host) -> bool:
        """Whether all cells are larger or smaller by a factor that roundings do not explain."""
        factor, chance = self.factor(theirs, ours)
        return abs(factor) > self.unit + SCALED * self.usual * chance

    def factor(self, theirs: Host, ours: Host) -> tuple[float, float]:
        """The factor less 1 that fits best, and how large it is by chance."""
        gap, cells = self._cells(theirs, ours)
        lengths = ours[cells] / self.spread[cells]
        if not (size := float(lengths @ lengths)):
            return 0.0, 0.0
        return float(gap / self.spread[cells] @ lengths) / size, size**-0.5

    @property
    def _far(self) -> tuple[float, float]:
        return FAR_SUMMED if self.unit == FLOAT16.unit else FAR

    def _cells(self, theirs: Host, ours: Host) -> tuple[Host, Host]:
        """Differences of the cells that roundings move, and which those are."""
        with np.errstate(invalid="ignore"):
            gap = theirs - ours
        cells = np.isfinite(gap) & (self.spread > 0) & (True if self.counted is None else self.counted)
        return gap[cells], cells


@dataclass(frozen=True, eq=False)
class Local:
    """A step of the dump beside what is computed from the inputs that the dump has, each cell within its tolerance."""

    entry: Entry
    segment: Segment
    tolerance: Host
    counted: Host | None
    roundings: Roundings | None = None

    def difference(self, change: Change | None = None) -> Difference:
        """Difference of the dump from the output of the program on the dump's inputs, right or changed.

        Where a mistake makes larger numbers, their roundings are larger too.
        """
        ours = self.segment.value(change)
        if ours.shape != self.entry.array.shape:
            return Difference(largest=np.inf, rms=np.inf, beyond=True)
        tolerance = self.tolerance * max(1.0, largest(np.abs(ours)) / (self._size or np.inf))
        if self.counted is None and exceeds(gaps(self.entry.array, ours), tolerance):
            return Difference(beyond=True)  # as of nearly every change: by how much is of no use
        found = compare(self.entry.array, ours, self.counted, tolerance)
        if self.roundings is not None and self.roundings.scaled(self.entry.array, ours):
            return replace(found, beyond=True)
        return found

    @cached_property
    def _size(self) -> float:
        return largest(np.abs(self.segment.value()))


def local(entry: Entry, given: Given, reference: Reference) -> Local:
    """A step beside what the right program makes of the nearest steps before it whose values are given."""
    segment = segment_of(entry, given, reference)
    unit = max(FLOAT32_UNIT, entry.precision.unit, *(segment.given[each][1].unit for each in segment.sources))
    counted = reference.counted(entry.step, entry.known)
    exact = entry.precision.of(entry.array)
    if unit > FLOAT32_UNIT:
        roundings = Roundings.of(entry.array, segment, unit, counted)
        return Local(entry, segment, exact + roundings.noise, counted, roundings)
    noise = max(SPREAD * segment.noise(unit), LEAST * unit * largest(np.abs(segment.value())))
    return Local(entry, segment, exact + noise, counted)


def segment_of(entry: Entry, given: Given, reference: Reference) -> Segment:
    """What lies between a step and the nearest steps before it whose values are given."""
    return Segment(reference.exact, entry.step, {name: each for name, each in given.items() if name != entry.step})


def given_by(entries: Sequence[Entry], reference: Reference) -> Given:
    """The steps that a dump holds whole, with −∞ where its numbers stand for it."""
    given = {}
    for each in entries:
        if each.known is None:
            array = each.array
            if (array <= HIDDEN).any():
                array = np.where(stands_for_infinity(array, reference.value(each.step)), -np.inf, array)
            given[each.step] = array, each.precision
    return given


# Numbers that were rounded to fewer bits on the way or do not fit them, and dropout

FEWEST = 12
"""Cells of which it can be told that they have few bits, or that not all zeros are there by chance."""

FINER = 0.1
"""The numbers of a dump are known to so small a part of a rounding, or nothing is said."""

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
