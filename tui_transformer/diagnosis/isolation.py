"""The first step that is wrong though its inputs are right, and the mistake that explains it.

The inputs of a step are those of the dump: they are put through the right steps. So a step whose inputs are wrong
already is not blamed, and a mistake is found however much follows from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tui_transformer.diagnosis.causes import CAUSES, Cause
from tui_transformer.diagnosis.causes.cause import kind
from tui_transformer.diagnosis.causes.dropout import NAME, dropped
from tui_transformer.diagnosis.causes.rounding import rounded
from tui_transformer.diagnosis.comparison import Difference, compare, stands_for_infinity, tolerance_of
from tui_transformer.diagnosis.dumps.precision import FLOAT32_UNIT
from tui_transformer.diagnosis.evaluation import Change, Segment
from tui_transformer.diagnosis.matching import Entry, counted_cells
from tui_transformer.diagnosis.right import Right
from tui_transformer.engine.backend import Host

SPREAD = 8.0
"""Roundings are granted so many times what two random ones made."""

LEAST = 4.0
ALIKE = 2.0
"""Mistakes that leave up to so many times as much as the best are alike: the first of them is named."""

Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Local:
    """A step computed from the inputs that the dump has.

    Attributes:
        entry: The step in the dump.
        segment: What lies between.
        tolerance: How far the two may be apart, one number a cell.
        counted: Cells that are compared.
    """

    entry: Entry
    segment: Segment
    tolerance: Host
    counted: Host | None

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
        tolerance = self.tolerance * max(1.0, _largest(ours) / (self._size or np.inf))
        return compare(self.entry.array, ours, self.counted, tolerance, shares=False)

    @cached_property
    def _size(self) -> float:
        return _largest(self.segment.value())


def local(entry: Entry, entries: Sequence[Entry], right: Right) -> Local:
    """A step beside what the right program makes of the nearest steps before it that the dump holds whole."""
    segment = segment_of(entry, entries, right)
    unit = max(FLOAT32_UNIT, entry.precision.unit)
    noise = max(SPREAD * segment.noise(unit), LEAST * unit * _largest(segment.value()))
    counted = counted_cells(right.counted(entry.step), entry.known)
    return Local(entry, segment, tolerance_of(entry.precision, entry.array, noise), counted)


def _largest(values: Host) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def segment_of(entry: Entry, entries: Sequence[Entry], right: Right) -> Segment:
    """What lies between a step and the nearest steps before it that the dump holds whole."""
    given = {
        each.step: (_finite(each.array, right.value(each.step)), each.precision)
        for each in entries
        if each.step != entry.step and each.known is None
    }
    return Segment(right.exact, entry.step, given)


def _finite(theirs: Host, ours: Host) -> Host:
    hidden = stands_for_infinity(theirs, ours)
    scores: Host = np.where(hidden, -np.inf, theirs) if hidden.any() else theirs
    return scores


def cause_of(where: Local, later: Sequence[Local] = (), report: Report = lambda _: None) -> Cause | None:
    """The mistake with which a step matches; None where none of those that are known does.

    Several may leave the same numbers there; then the one is named that explains most of the later wrong steps too.
    """
    fitting = _fitting(where, report)
    if not fitting:
        theirs = where.entry.array
        says = dropped(where.segment, theirs, where.counted)
        if says is not None:
            return Cause(NAME, Change(), says)
        return rounded(where.segment, theirs, where.entry.precision, where.counted)
    if len(fitting) == 1:
        return fitting[0]
    names = {cause.name for cause in fitting}
    also = Counter(cause for each in later for cause in {fit.name for fit in _fitting(each, report)} & names)
    return max(fitting, key=lambda cause: also[cause.name])


def _fitting(where: Local, report: Report) -> list[Cause]:
    """The mistakes with which a step matches about as well as with the best of them, one a name, in their order."""
    fitting: list[tuple[float, Cause]] = []
    for causes in CAUSES:
        for cause in causes(where.segment):
            report(cause.name)
            difference = _tried(where, cause)
            if difference is not None and not difference.beyond:
                fitting.append((difference.rms, cause))
    best = min((rms for rms, _ in fitting), default=0.0)
    alike = [cause for rms, cause in fitting if rms <= ALIKE * best]
    return [
        min((other for other in alike if other.name == name), key=_reach)
        for name in dict.fromkeys(c.name for c in alike)
    ]


def _reach(cause: Cause) -> int:
    """How many kinds of steps and weights a mistake changes: fewer explain the same better."""
    return len({kind(name) for name in (*cause.change.steps, *cause.change.weights)})


def _tried(where: Local, cause: Cause) -> Difference | None:
    """The difference that is left with a mistake; None where it cannot be made there."""
    try:
        return where.difference(cause.change)
    except (ValueError, IndexError, FloatingPointError):
        return None
