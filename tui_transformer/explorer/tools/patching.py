"""Tables of patches from another sentence as heat maps: layers × positions or heads; senders × receivers of paths."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Union

import numpy as np
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from tui_transformer.analysis.patching import Measured, Place, PlaceKind, Table, kinds_of, measured, table_of
from tui_transformer.analysis.paths import DIVERGENCE
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, minus, spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import copy_line
from tui_transformer.explorer.shell.incremental import Pieces
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to, show_map
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen, reading
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation import PAUSE, perform
from tui_transformer.explorer.tools.measure import choose
from tui_transformer.explorer.tools.patch import Draft
from tui_transformer.explorer.tools.path_table import PathTable, TwoSentences, receivers_of
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.records import dataclass, field, replace
from tui_transformer.session.answer_summary import metric_of
from tui_transformer.session.edit_format import FromSentence
from tui_transformer.session.other_sentences import counterpart
from tui_transformer.session.session import Session
from tui_transformer.session.shell_line import shell_line
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import NOTHING
from tui_transformer.views.step_view import placed, scale_for
from tui_transformer.views.view import Axis, Scale, View, window_of

START = "embedding"
LEAST_RANGE = 1.0
"""Nats, or so much of a logit, that the colours reach over at least: what changes less has nearly one colour."""

PATHS = "path"
AnyTable = Union["PatchTable", PathTable]


class PatchingScreen(Overview, tool="patching"):
    """The effect of every position, head or layer that is brought over from another sentence, and of every path."""

    WIDGETS = (HeatMap, Legend)
    DEFAULT_CSS = """
    PatchingScreen {
        #maps { height: 1fr; Vertical { width: 1fr; } HeatMap { height: 1fr; } }
        #estimate, .map-title { display: none; }
        &.-estimated #estimate, &.-estimated .map-title { display: block; }
        #estimate { padding: 0 0 0 2; }
        .map-title { height: 1; color: $foreground 65%; }
    }
    """
    pieces: Pieces[AnyTable, tuple[AnyTable, Any]]

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        program = self.session.trace.program
        self.receivers, self.to = receivers_of(program), 0
        self.kinds = (*kinds_of(program), *(((PATHS, ""),) if self.receivers else ()))
        self.at = 0
        self.table: AnyTable | None = None
        self.suggested = ""
        self.pieces = Pieces(
            self.requests,
            self.KIND,
            lambda: self.table if self.table is not None and not self.ended and self.table.missing else None,
            lambda _: AT_ONCE + 1,
            lambda table, task: (table, table.measure(task)),
            self._take,
        )

    def content(self) -> ComposeResult:
        with Horizontal(id="maps"):
            with Vertical():
                yield Static("patched alone", classes="map-title")
                yield HeatMap()
            with Vertical(id="estimate"):
                yield Static("estimated: gradient × difference", classes="map-title")
                estimate = HeatMap(id="estimates")
                estimate.can_focus = False
                yield estimate
        yield Legend()

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
        return other.with_edits(*here.edits)  # as the shell has it

    def action_sentence(self) -> None:
        check, answered = reading(self._read, self._begin)
        other = self.session if self.table is None else self.table.other
        value = other.text or other.encoding.text
        self.open(PromptScreen("Patch from", value=value, hint="a sentence of as many tokens", check=check), answered)

    def _begin(self, other: Session) -> None:
        self.ended = False
        kind, of = self.kinds[self.at]
        if kind == PATHS:
            self.table = PathTable(self.session, other, self.receivers[self.to])
        else:
            self.table = PatchTable(self.session, other, kind, of)
        self._show(self.table)
        self.pieces.again()

    def _take(self, part: tuple[AnyTable, Any]) -> None:
        table, found = part
        table.take(found)
        self._show(table)

    def _show(self, table: AnyTable) -> None:
        show_map(self, table.view, table.scale, table.note)
        estimate = table.estimate
        self.set_class(estimate is not None, "-estimated")
        if estimate is not None:
            tile = estimate.tile(range(estimate.rows.size), range(estimate.columns.size))
            cursor = self.query_one(HeatMap).cursor
            self.query_one("#estimates", HeatMap).show(estimate, table.scale, tile, cursor=cursor)
        self.show_lines()

    def moved(self) -> None:
        self.query_one("#estimates", HeatMap).cursor = self.query_one(HeatMap).cursor
        self.show_lines()

    def texts(self) -> Texts:
        table = self.table
        if table is None:
            hint = self.port.hint("{sentence.edit} asks for the other sentence")
            useless = ("step.next", "layer.next", "copy.cell")
            return Texts("Tables of patches", "", ("nothing is patched yet", hint), hidden=useless)
        other, note = table.other, ""
        if table.ends is not None:
            was, becomes = (spoken(end, 4) for end in table.ends)
            note = f"{table.metric}: {was} as it is, {becomes} of the other sentence"
        other_text = other.text or other.encoding.text
        suggested = "the suggested " * (other_text == self.suggested)
        useful = {"step.next": self.ended, "layer.next": isinstance(table, PathTable) and len(self.receivers) > 1}
        first, second = table.cell(*self.query_one(HeatMap).cursor)
        return Texts(
            f"Patch · each {table.title} from {suggested}“{other_text}”",
            note,
            (first, self.port.hint(second)),
            table.progress + (" · ended" if self.ended else ""),
            hidden=[name for name, is_useful in useful.items() if not is_useful],
        )

    # What keys do

    def action_kind(self) -> None:
        self.at = (self.at + 1) % len(self.kinds)
        self._begin_again()

    def action_receivers(self, by: int) -> None:
        if isinstance(self.table, PathTable):
            self.to = (self.to + by) % len(self.receivers)
            self._begin_again()
        else:
            self.say(self.port.hint("these are no paths: {kind} goes on to them"))

    def action_copy_line(self) -> None:
        table, measure = self.table, self.session.measure
        if table is None:
            return
        other = table.other
        read = ("--from-text", other.text) if other.text else ("--from-ids", ",".join(map(str, other.encoding.ids)))
        metric = () if measure is None else ("--metric", measure.name)
        tokens = () if measure is None or not measure.tokens else ("--tokens", ",".join(map(str, measure.tokens)))
        copy_line(self, shell_line(self.session, "patch", *read, *table.options, *metric, *tokens))

    def action_measure(self) -> None:
        choose(self.port, self.open, self.change, self._begin_again)

    def _begin_again(self) -> None:
        if self.table is not None:
            self._begin(self.table.other)

    def chosen(self) -> None:
        table = self.table
        if isinstance(table, PathTable):
            part = table.senders[self.query_one(HeatMap).cursor[0]].parts[0]
            leave_to(self, part.steps[0], head=part.number or 0)
            return
        place = None if table is None else table.place(*self.query_one(HeatMap).cursor)
        if table is None or place is None:
            return
        other, port = table.other, self.port
        patch = FromSentence.between(self.session.base, other.trace, place.step, place.rows, place.heads)
        draft = Draft(other, replace(patch, sentence=other.text or other.encoding.text))
        self.action_leave()
        port.ask("patch", AT_ONCE + 1, draft.build, lambda made: perform(port, (made,)))


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

    @property
    def options(self) -> tuple[str, ...]:
        """What makes the same table in the shell."""
        return ("--each", self.kind, *(("--of", self.of) if self.of else ()))

    # What is shown

    @property
    def scale(self) -> Scale:
        """From the least to the largest, with the metric of both sentences."""
        there = [*self.values.values(), *(self.ends or ())]
        low, high = min(there, default=0.0), max(there, default=1.0)
        return scale_for("diverging" if low < 0 else "sequential", low, max(high, low + LEAST_RANGE))

    @property
    def note(self) -> str:
        """What the colours mean, beside the scale."""
        return f"{self.metric}, with the cell patched"

    @property
    def estimate(self) -> View | None:
        return None

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
        share = self.share(value)
        way = "" if np.isnan(share) else f"  {in_percent(share)} of the way to the other sentence"
        return (
            f"{what}  {minus(f'{value:.4f}')}{way}",
            f"{place.step} · {{cursor.choose}} patches it in the main screen",
        )

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
