"""Paths from senders to receivers of one kind: each patched alone, and the estimate of it, as far as they are known."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import groupby

import numpy as np

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.nodes import RECEIVERS, SENDERS, Node, nodes
from tui_transformer.analysis.paths import DIVERGENCE, By, Paths, leading, paths
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, minus
from tui_transformer.engine.program import Program, Step
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.records import dataclass, field
from tui_transformer.session.answer_summary import metric_of, metric_said, on_targets
from tui_transformer.session.session import Session
from tui_transformer.views.step_view import path_view, scale_for
from tui_transformer.views.view import Scale, View

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
        return answer_positions(self.session.trace, folder=self.session.model.folder)

    @property
    def metric(self) -> str:
        metric = metric_said(self.session) or DIVERGENCE.said()
        return metric if on_targets(self.session.measure) else f"{metric} at position {self.positions.start}"


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

    def measure(self, task: Task) -> list[Found]:
        """On the worker: the estimates of all paths, then those of the next senders, which are computed together."""
        if self.estimated and self.estimates is None:
            return [(range(0), self._paths(task, self.senders, "gradient"))]
        start = self.done
        _, alike = next(groupby(range(start, len(self.senders)), lambda i: self.senders[i].steps))
        some = range(start, start + len(list(alike)))
        senders = self.senders[some.start : some.stop]
        if self.there[some.start : some.stop].any():
            return [(some, self._paths(task, senders, "patching"))]
        nothing = np.full((len(some), len(self.receivers)), np.nan)
        own, other = self.ends or (math.nan, math.nan)
        return [(some, Paths(senders, self.receivers, nothing, own, other, "patching"))]

    def _paths(self, task: Task, senders: tuple[Node, ...], by: By) -> Paths:
        metric, trace, other = metric_of(self.session) or DIVERGENCE, self.session.trace, self.other.trace
        names = [str(sender) for sender in senders]
        what = f"{names[0]} … " if len(names) > 1 else f"{names[0]} "

        def report(more: str) -> None:
            task.report(what + more)

        def before(step: Step) -> None:
            report(step.name)

        where = self.positions
        return paths(trace, other, names, self.kind, metric, by=by, positions=where, before=before, report=report)

    def take(self, found: list[Found]) -> None:
        for some, each in found:
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

    @property
    def note(self) -> str:
        """What the colours mean, beside the scale."""
        return f"change of {self.metric}, with the path patched"

    def cell(self, row: int, column: int) -> tuple[str, str]:
        """A path in words with what it changes; and what of it is known."""
        sender, receiver, value = self.senders[row], self.receivers[column], float(self.values[row, column])
        what = f"{sender} → {receiver}"
        if not self.there[row, column]:
            return what, "nothing leads straight from one to the other"
        estimate = "" if self.estimates is None else f"{minus(f'{self.estimates[row, column]:+.4f}')} estimated"
        if row >= self.done:
            return f"{what}  {estimate}".rstrip(), "not yet patched"
        own, other = self.ends or (0.0, 0.0)
        way = f" · {in_percent(value / (other - own))} of the way to the other sentence" if other != own else ""
        none = (
            "" if self.estimated else " · KL has no estimate: its gradient is 0 here, {measure} chooses another metric"
        )
        return (
            f"{what}  {minus(f'{value:+.4f}')} patched  {estimate}".rstrip(),
            f"{{cursor.choose}} goes to the sender{way}{none}",
        )

    @property
    def options(self) -> tuple[str, ...]:
        """What makes the same table in the shell."""
        return "--receivers", self.kind
