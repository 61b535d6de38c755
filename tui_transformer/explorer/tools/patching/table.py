"""A table of patches on the way: what is known of it, and measuring the rest on the worker."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import Measured, Place, Table, measured, table_of
from tui_transformer.engine.backend import Host
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.session.answer_summary import metric_of, metric_said, on_targets
from tui_transformer.session.session import Session
from tui_transformer.views.view import Axis, View, window_of

START = "embedding"
USUAL = Metric("divergence")


@dataclass(eq=False)
class PatchTable:
    """One kind of places of two sentences, with what was measured so far.

    Attributes:
        session: The sentence that is explored.
        other: The one that values come from.
        kind: One of `kinds_of`.
        pause: Seconds of measuring after which what was found is handed over.
    """

    session: Session
    other: Session
    kind: str
    pause: float = 0.05
    values: dict[Place, float] = field(default_factory=dict)
    ends: tuple[float, float] | None = None
    """The metric of the sentence itself and of the other, once they are known."""

    @property
    def what(self) -> str:
        """Kind of the patched places: "position", "head" or "layer"."""
        return self.kind.partition(":")[0]

    @property
    def said_kind(self) -> str:
        """The same in words, with the stack or attention where it is not the last."""
        return " of ".join(filter(None, self.kind.partition(":")[::2]))

    @cached_property
    def table(self) -> Table:
        """The places."""
        return table_of(self.session.trace.program, self.kind)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The layers; −1 is what enters the first."""
        return tuple(sorted({place.row for place in self.table.places}))

    @cached_property
    def columns(self) -> int:
        """How many positions or heads."""
        return 1 + max(place.column for place in self.table.places)

    @cached_property
    def positions(self) -> range:
        """Where the answer is read."""
        return answer_positions(self.session.trace, folder=self.session.model.folder)

    @property
    def missing(self) -> tuple[Place, ...]:
        """The places that are not measured."""
        return tuple(place for place in self.table.places if place not in self.values)

    @property
    def said(self) -> str:
        """The metric, and the position that it is read at."""
        metric = metric_said(self.session) or USUAL.said()
        return metric if on_targets(self.session.measure) else f"{metric} at position {self.positions.start}"

    def measure(self, places: Sequence[Place], task: Task) -> list[Measured]:
        """On the worker: some of the places, until it is time to hand them over."""
        metric, trace, other = metric_of(self.session) or USUAL, self.session.trace, self.other.trace
        if self.ends is None:
            for each in (trace, other):
                each.compute(before=lambda step: task.report(step.name))
            self.ends = metric.measure(trace, trace, self.positions), metric.measure(other, trace, self.positions)
        part, end = list[Measured](), time.monotonic() + self.pause
        done, total = len(self.values), len(self.table.places)

        def report(_: object) -> None:
            task.report(f"{done + len(part):,} of {total:,} places")

        for some in measured(trace, other, places, metric, self.positions, report):
            part += some
            if time.monotonic() > end:
                break
        return part

    def take(self, part: Sequence[Measured]) -> None:
        """Remember what was measured."""
        self.values |= {each.place: each.value for each in part}

    def place(self, row: int, column: int) -> Place | None:
        """The place of a cell."""
        wanted = self.rows[row], column
        return next((place for place in self.table.places if (place.row, place.column) == wanted), None)

    def share(self, value: float) -> float:
        """(value − own) ÷ (other − own): how much of the way to the other sentence; NaN where there is no way."""
        own, other = self.ends or (0.0, 0.0)
        return (value - own) / (other - own) if other != own else math.nan

    @property
    def view(self) -> View:
        """The shares of the way as a matrix, NaN where nothing is known; the metric where there is no way."""
        values: Host = np.full((len(self.rows), self.columns), np.nan)
        for place, value in self.values.items():
            values[self.rows.index(place.row), place.column] = value
        down = Axis(self.table.rows, len(self.rows), self.layer)
        across = Axis(self.table.columns, self.columns, self.label)
        return View(f"patch each {self.said_kind}", self.said, down, across, "sequential", window_of(values))

    def layer(self, row: int) -> str:
        """A row in words."""
        return START if self.rows[row] < 0 else f"layer {self.rows[row]}"

    def label(self, column: int) -> str:
        """A column in words: the token of a position, or the number of a head."""
        if self.what != "position":
            return str(column) if self.what == "head" else "all"
        axis = self.session.trace.program.axes(self.table.places[-1].step)[-2]
        return self.session.labels.of(axis)(column)
