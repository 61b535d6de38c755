"""Tables of patches: layers × positions or heads, each patched alone from another sentence, as a heat map."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.metrics import Metric
from tui_transformer.analysis.patching import Measured, Place, PlaceKind, Table, kinds_of, measured, table_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, minus, spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, Texts, show_map
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen, reading
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation import perform
from tui_transformer.explorer.tools.measure import choose
from tui_transformer.explorer.tools.patch import Draft
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.session.answer_summary import metric_of, metric_said, on_targets
from tui_transformer.session.edit_format import FromSentence
from tui_transformer.session.other_sentences import counterpart
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import NOTHING
from tui_transformer.views.step_view import placed, scale_for
from tui_transformer.views.view import Axis, View, window_of

START = "embedding"
USUAL = Metric("divergence")
PAUSE = 0.05
"""Seconds of measuring after which what was found is handed over."""

LEAST_RANGE = 1.0
"""Nats, or so much of a logit, that the colours reach over at least: what changes less has nearly one colour."""

Part = tuple["PatchTable", Sequence[Measured]]


def open_from(port: Port) -> None:
    """A table of the positions, with the values of a sentence that is suggested."""
    port.open(PatchingScreen(port))


class PatchingScreen(Overview, tool="patching"):
    """The effect of every position, head or layer that is brought over from another sentence."""

    WIDGETS = (HeatMap, Legend)
    pieces: Pieces[PatchTable, Part]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.kinds = kinds_of(self.session.trace.program)
        self.at = 0
        self.table: PatchTable | None = None
        self.suggested = ""
        self.pieces = Pieces(
            self.requests,
            self.KIND,
            lambda: self.table if self.table is not None and not self.ended and self.table.missing else None,
            lambda _: AT_ONCE + 1,
            lambda table, task: (table, table.measure(task)),
            self._take,
        )

    def begin(self) -> None:
        """The counterpart of the sentence; where none is found it is asked for."""
        self.suggested = counterpart(self.session)
        try:
            other = self._read(self.suggested) if self.suggested else None
        except InputError:
            other = None
        if other is not None:
            self._begin(other)
            return
        self.show_lines()
        self.call_after_refresh(self.action_sentence)

    def _read(self, text: str) -> Session:
        here = self.session.with_overlay(NOTHING)
        other = replace(here, edits=()).with_text(text)
        tokens = len(here.encoding.tokens), len(other.encoding.tokens)
        if tokens[0] != tokens[1]:
            raise InputError(f"it has {tokens[1]} tokens and this sentence {tokens[0]}: a table needs as many")
        return other

    def action_sentence(self) -> None:
        check, answered = reading(self._read, self._begin)
        other = self.session if self.table is None else self.table.other
        value = other.text or other.encoding.text
        self.open(PromptScreen("Patch from", value=value, hint="a sentence of as many tokens", check=check), answered)

    def _begin(self, other: Session) -> None:
        self.ended = False
        self.table = PatchTable(self.session, other, *self.kinds[self.at])
        self._show()
        self.pieces.again()

    def _take(self, part: Part) -> None:
        table, found = part
        table.values |= {each.place: each.value for each in found}
        self._show()

    def _show(self) -> None:
        table = self.table
        if table is None:
            return
        view = table.view
        values = view.window(range(view.rows.size), range(view.columns.size))
        there = [*values[np.isfinite(values)].tolist(), *(table.ends or ())]
        low, high = min(there, default=0.0), max(there, default=1.0)
        scale = scale_for("diverging" if low < 0 else "sequential", low, max(high, low + LEAST_RANGE))
        show_map(self, view, scale, f"{table.metric}, with the cell patched")
        self.show_lines()

    def texts(self) -> Texts:
        table = self.table
        if table is None:
            hint = self.port.hint("{sentence.edit} asks for the other sentence")
            return Texts("Tables of patches", "", ("nothing is patched yet", hint))
        other, note = table.other, ""
        if table.ends is not None:
            was, becomes = (spoken(end, 4) for end in table.ends)
            note = f"{table.metric}: {was} as it is, {becomes} of the other sentence"
        other_text = other.text or other.encoding.text
        suggested = "the suggested " * (other_text == self.suggested)
        done = f"{len(table.values):,} of {len(table.table.places):,} places"
        return Texts(
            f"Patch · each {table.title} from {suggested}“{other_text}”",
            note,
            self._cell(table),
            done + (" · ended" if self.ended else ""),
            hidden=() if self.ended else ("step.next",),
        )

    def _cell(self, table: PatchTable) -> tuple[str, str]:
        row, column = self.query_one(HeatMap).cursor
        place = table.place(row, column)
        if place is None:
            return "", ""
        what = table.layer(row)
        if table.kind != "layer":
            name = table.label(column)
            what += f" · {table.kind} {placed(name, column) if table.kind == 'position' else name}"
        value = table.values.get(place)
        if value is None:
            return what, "not yet measured"
        share = table.share(value)
        enter = self.port.hint("{cursor.choose} patches it in the main screen")
        way = "" if np.isnan(share) else f"  {in_percent(share)} of the way to the other sentence"
        return f"{what}  {minus(f'{value:.4f}')}{way}", f"{place.step} · {enter}"

    # What keys do

    def action_kind(self) -> None:
        self.at = (self.at + 1) % len(self.kinds)
        self._begin_again()

    def action_measure(self) -> None:
        choose(self.port, self.open, self.change, self._begin_again)

    def _begin_again(self) -> None:
        if self.table is not None:
            self._begin(self.table.other)

    def chosen(self) -> None:
        table = self.table
        place = None if table is None else table.place(*self.query_one(HeatMap).cursor)
        if table is None or place is None:
            return
        other, port = table.other, self.port
        patch = FromSentence.between(self.session.base, other.trace, place.step, place.rows, place.heads)
        draft = Draft(other, replace(patch, sentence=other.text or other.encoding.text))
        self.action_leave()
        port.ask("patch", AT_ONCE + 1, draft.build, lambda made: perform(port, (made,)))


@dataclass(eq=False)
class PatchTable:
    """One kind of places (of `kinds_of`) that take values from another sentence, with what was measured so far.

    Attributes:
        ends: The metric of the sentence itself and of the other, once they are known.
    """

    session: Session
    other: Session
    kind: PlaceKind
    of: str
    values: dict[Place, float] = field(default_factory=dict)
    ends: tuple[float, float] | None = None

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

    @cached_property
    def positions(self) -> range:
        return answer_positions(self.session.trace, folder=self.session.model.folder)

    @property
    def missing(self) -> tuple[Place, ...]:
        return tuple(place for place in self.table.places if place not in self.values)

    @property
    def metric(self) -> str:
        metric = metric_said(self.session) or USUAL.said()
        return metric if on_targets(self.session.measure) else f"{metric} at position {self.positions.start}"

    def measure(self, task: Task) -> list[Measured]:
        """On the worker: some of what is missing, until it is time to hand it over."""
        metric, trace, other = metric_of(self.session) or USUAL, self.session.trace, self.other.trace
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

    def place(self, row: int, column: int) -> Place | None:
        wanted = self.rows[row], column
        return next((place for place in self.table.places if (place.row, place.column) == wanted), None)

    def share(self, value: float) -> float:
        """(value − own) ÷ (other − own): how much of the way to the other sentence; NaN where there is no way."""
        own, other = self.ends or (0.0, 0.0)
        return (value - own) / (other - own) if other != own else math.nan

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
        return START if self.rows[row] < 0 else f"layer {self.rows[row]}"

    def label(self, column: int) -> str:
        """A column in words: the token of a position, or the number of a head."""
        if self.kind != "position":
            return str(column) if self.kind == "head" else "all"
        axis = self.session.trace.program.axes(self.table.places[-1].step)[-2]
        return self.session.labels.of(axis)(column)
