"""A step of a dump beside what is computed from the inputs that the dump has, and how far roundings move that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from tui_transformer.diagnosis.causes.cause import Change, Segment
from tui_transformer.diagnosis.causes.rounding import SPREAD
from tui_transformer.diagnosis.dumps.dump import FLOAT16, FLOAT32_UNIT, Precision
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
from tui_transformer.engine.backend import Host
from tui_transformer.records import dataclass, replace

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

    @property
    def wrong(self) -> bool:
        """The right steps make something else of the same inputs."""
        return self.difference(None).beyond

    def difference(self, change: Change | None) -> Difference:
        """Difference of the dump from the output of a changed program on the dump's inputs.

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
