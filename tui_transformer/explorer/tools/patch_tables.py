"""Tables of patches from another sentence, as far as they are known: places, and paths with the estimate of each."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby

import numpy as np

from tui_transformer.analysis.nodes import RECEIVERS, SENDERS, Node, nodes
from tui_transformer.analysis.patching import Measured, Place, PlaceKind, Table, measured, table_of
from tui_transformer.analysis.paths import DIVERGENCE, By, Paths, leading, paths
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, minus
from tui_transformer.engine.program import Program, Step
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.effects import PAUSE
from tui_transformer.records import dataclass, field
from tui_transformer.session.answer_summary import metric_of, metric_said, on_targets
from tui_transformer.session.session import Session
from tui_transformer.views.step_view import path_view, placed, scale_for
from tui_transformer.views.view import Axis, Scale, View, window_of

TITLES = {"query": "queries", "key": "keys", "value": "values", "feed_forward": "feed-forward layers"}

Found = tuple[range, Paths]
"""Numbers of some senders, and their paths."""


def receivers_of(program: Program) -> tuple[str, ...]:
    """The kinds of receivers that something leads straight to, the logits first."""
    if not any(step.role == "residual" for step in program.steps):
        return ()
    senders = nodes(program, tuple(SENDERS), SENDERS)
    there = [kind for kind in RECEIVERS if RECEIVERS[kind](program)]
    reached = [kind for kind in there if leading(program, senders, nodes(program, kind, RECEIVERS)).any()]
    return tuple(sorted(reached, key=lambda kind: kind != "logits"))


@dataclass(eq=False)
class TwoSentences:
    """A sentence that takes values from another, and how that is measured.

    Attributes:
        ends: The metric of the sentence itself and of the other, once they are known.
    """

    session: Session
    other: Session
    ends: tuple[float, float] | None = field(default=None, kw_only=True)

    @cached_property
    def positions(self) -> range:
        return self.session.answer_rows

    @property
    def metric(self) -> str:
        metric = metric_said(self.session) or DIVERGENCE.said()
        return metric if on_targets(self.session.measure) else f"{metric} at position {self.positions.start}"

    def way(self, change: float) -> str:
        """How much of the way to the other sentence, change ÷ (other − own); "" where there is no way."""
        own, other = self.ends or (0.0, 0.0)
        share = change / (other - own) if other != own else math.nan
        return "" if math.isnan(share) else f"{in_percent(share)} of the way to the other sentence"


# Places: layers × positions or heads


@dataclass(eq=False)
class PatchTable(TwoSentences):
    """One kind of places (of `kinds_of`) that take values from another sentence, with what was measured so far."""

    kind: PlaceKind
    of: str
    values: dict[Place, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The kind in words, with the stack or attention where it is not the last."""
        return " of ".join(filter(None, (self.kind, self.of)))

    @cached_property
    def table(self) -> Table:
        return table_of(self.session.trace.program, self.kind, self.of)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The layers; −1 is what enters the first."""
        return tuple(sorted({place.row for place in self.table.places}))

    @property
    def missing(self) -> tuple[Place, ...]:
        return tuple(place for place in self.table.places if place not in self.values)

    def measure(self, task: Task) -> list[Measured]:
        """On the worker: some of what is missing, until it is time to hand it over."""
        metric, trace, other = metric_of(self.session) or DIVERGENCE, self.session.trace, self.other.trace
        if self.ends is None:
            for each in (trace, other):
                each.compute(before=lambda step: task.report(step.name))
            self.ends = metric.measure(trace, trace, self.positions), metric.measure(other, trace, self.positions)
        part, end = list[Measured](), time.monotonic() + PAUSE
        done, total = len(self.values), len(self.table.places)

        def report(_: object) -> None:
            task.report(f"{done + len(part):,} of {total:,} places")

        for some in measured(trace, other, self.missing, metric, self.positions, report):
            part += some
            if time.monotonic() > end:
                break
        return part

    def take(self, found: Sequence[Measured]) -> None:
        self.values |= {each.place: each.value for each in found}

    @property
    def progress(self) -> str:
        return f"{len(self.values):,} of {len(self.table.places):,} places"

    # What is shown

    @property
    def scale(self) -> Scale:
        """From the least to the largest, with the metric of both sentences.

        The colours reach over a nat, or 1 of a logit, at least: what changes less has nearly one colour.
        """
        there = [*self.values.values(), *(self.ends or ())]
        low, high = min(there, default=0.0), max(there, default=1.0)
        return scale_for("diverging" if low < 0 else "sequential", low, max(high, low + 1.0))

    def cell(self, row: int, column: int) -> tuple[str, str]:
        """A place in words with what was measured, and what can be done with it."""
        place = self.place(row, column)
        if place is None:
            return "", ""
        what = self.layer(row)
        if self.kind != "layer":
            name = self.label(column)
            what += f" · {self.kind} {placed(name, column) if self.kind == 'position' else name}"
        value = self.values.get(place)
        if value is None:
            return what, "not yet measured"
        way = self.way(value - (self.ends or (0.0,))[0])
        return (
            f"{what}  {minus(f'{value:.4f}')}  {way}".rstrip(),
            f"{place.step} · {{cursor.choose}} patches it in the main screen",
        )

    def place(self, row: int, column: int) -> Place | None:
        wanted = self.rows[row], column
        return next((place for place in self.table.places if (place.row, place.column) == wanted), None)

    @property
    def view(self) -> View:
        """What was measured as a matrix, NaN where nothing is known."""
        rows, columns = len(self.rows), 1 + max(place.column for place in self.table.places)
        values: Host = np.full((rows, columns), np.nan)
        for place, value in self.values.items():
            values[self.rows.index(place.row), place.column] = value
        down, across = Axis(self.table.rows, rows, self.layer), Axis(self.table.columns, columns, self.label)
        return View(f"patch each {self.title}", self.metric, down, across, "sequential", window_of(values))

    def layer(self, row: int) -> str:
        return "embedding" if self.rows[row] < 0 else f"layer {self.rows[row]}"

    def label(self, column: int) -> str:
        """A column in words: the token of a position, or the number of a head."""
        if self.kind != "position":
            return str(column) if self.kind == "head" else "all"
        axis = self.session.trace.program.axes(self.table.places[-1].step)[-2]
        return self.session.labels.of(axis)(column)


# Paths: senders × receivers


@dataclass(eq=False)
class PathTable(TwoSentences):
    """All senders × the receivers of a kind.

    Attributes:
        values: How far every path moves the metric, patched alone; NaN where it is not yet known, or there is none.
        estimates: The same by gradient × difference; None where that is not known, or the metric has no gradient.
        done: Senders whose paths are known.
    """

    kind: str
    values: Host = field(init=False)
    estimates: Host | None = None
    done: int = 0

    def __post_init__(self) -> None:
        self.values = np.full(self.there.shape, np.nan)

    @cached_property
    def senders(self) -> tuple[Node, ...]:
        return nodes(self.session.trace.program, tuple(SENDERS), SENDERS)

    @cached_property
    def receivers(self) -> tuple[Node, ...]:
        return nodes(self.session.trace.program, self.kind, RECEIVERS)

    @cached_property
    def there(self) -> Host:
        """Senders × receivers, true where there is a path."""
        return leading(self.session.trace.program, self.senders, self.receivers)

    @property
    def title(self) -> str:
        return f"path to {TITLES.get(self.kind, self.kind)}"

    @property
    def missing(self) -> bool:
        return self.done < len(self.senders)

    @property
    def progress(self) -> str:
        return f"{int(self.there[: self.done].sum()):,} of {int(self.there.sum()):,} paths"

    @property
    def estimated(self) -> bool:
        """Whether there is an estimate: the divergence from the sentence itself has gradient 0."""
        return (metric_of(self.session) or DIVERGENCE) != DIVERGENCE

    # Measuring

    def measure(self, task: Task) -> Found:
        """On the worker: the estimates of all paths, then those of the next senders, which are computed together."""
        if self.estimated and self.estimates is None:
            return range(0), self._paths(task, self.senders, "gradient")
        start = self.done
        _, alike = next(groupby(range(start, len(self.senders)), lambda i: self.senders[i].steps))
        some = range(start, start + len(list(alike)))
        senders = self.senders[some.start : some.stop]
        if self.there[some.start : some.stop].any():
            return some, self._paths(task, senders, "patching")
        nothing = np.full((len(some), len(self.receivers)), np.nan)
        return some, Paths(senders, self.receivers, nothing, *(self.ends or (math.nan, math.nan)), "patching")

    def _paths(self, task: Task, senders: tuple[Node, ...], by: By) -> Paths:
        metric, trace, other = metric_of(self.session) or DIVERGENCE, self.session.trace, self.other.trace
        names = [str(sender) for sender in senders]
        what = f"{names[0]} … " if len(names) > 1 else f"{names[0]} "

        def report(more: str | Step) -> None:
            task.report(what + (more if isinstance(more, str) else more.name))

        where = self.positions
        return paths(trace, other, names, self.kind, metric, by=by, positions=where, before=report, report=report)

    def take(self, found: Found) -> None:
        some, each = found
        if not math.isnan(each.own):
            self.ends = each.own, each.other
        if each.by == "gradient":
            self.estimates = each.changes
        else:
            self.values[some.start : some.stop] = each.changes
            self.done = some.stop

    # What is shown

    @property
    def view(self) -> View:
        return path_view(self.senders, self.receivers, self.values, "patching", self.metric)

    @property
    def estimate(self) -> View | None:
        if self.estimates is None:
            return None
        return path_view(self.senders, self.receivers, self.estimates, "gradient", self.metric)

    @property
    def scale(self) -> Scale:
        """The same for both, from 0 to either side."""
        known = [each[np.isfinite(each)] for each in (self.values, self.estimates) if each is not None]
        most = max((float(np.abs(each).max(initial=0.0)) for each in known), default=0.0) or 1.0
        return scale_for("diverging", -most, most)

    def cell(self, row: int, column: int) -> tuple[str, str]:
        """A path in words with what it changes; and what of it is known."""
        sender, receiver, value = self.senders[row], self.receivers[column], float(self.values[row, column])
        what = f"{sender} → {receiver}"
        if not self.there[row, column]:
            return what, "nothing leads straight from one to the other"
        estimate = "" if self.estimates is None else f"{minus(f'{self.estimates[row, column]:+.4f}')} estimated"
        if row >= self.done:
            return f"{what}  {estimate}".rstrip(), "not yet patched"
        none = "" if self.estimated else "KL has no estimate: its gradient is 0 here, {measure} chooses another metric"
        more = filter(None, ("{cursor.choose} goes to the sender", self.way(value), none))
        return f"{what}  {minus(f'{value:+.4f}')} patched  {estimate}".rstrip(), " · ".join(more)
