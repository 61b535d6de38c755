"""Probes: what can be read from every layer at every position, on texts that nothing was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from tui_transformer.analysis.directions import Direction, Word
from tui_transformer.analysis.labelled import Labelled, Values, read_labelled, stream, values_of
from tui_transformer.analysis.probes import Probe, ProbeKind, Which, probe
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import minus
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, following, leave_to, show_map, work_on
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.user_files import path_of, recent, remember
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.files import expanded
from tui_transformer.records import dataclass, field
from tui_transformer.session.break_effect import whole
from tui_transformer.session.edit_format import left_out
from tui_transformer.session.session import Session
from tui_transformer.text.display import token_label, visible
from tui_transformer.text.files import shown_path
from tui_transformer.views.step_view import scale_for
from tui_transformer.views.view import Axis, Scale, View, window_of

KINDS: tuple[ProbeKind, ...] = get_args(ProbeKind)
TITLES: Mapping[ProbeKind, str] = {
    "ridge": "ridge regression",
    "logistic": "logistic regression",
    "difference": "difference of means",
}
MOST_SAID = 3
"""Classes whose words are said."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A probe with the words that its directions raise and lower; none where nothing spells any."""

    probe: Probe
    words: tuple[tuple[Word, ...], ...]


Cell = tuple[int, int]


@dataclass(eq=False)
class Probes:
    """The probes of a kind on some texts, with those that are known.

    Attributes:
        session: Without edits and breaks, as the texts are read.
        values: Those of every layer, once the model has read the texts.
        found: By layer and position; why there is none, where it cannot be fitted.
    """

    session: Session
    path: Path
    labelled: Labelled
    kind: ProbeKind
    values: Mapping[str, Values] | None = None
    found: dict[Cell, Fitted | str] = field(default_factory=dict)

    @property
    def steps(self) -> tuple[str, ...]:
        """The rows: what enters the first layer, and what leaves each."""
        return tuple(stream(self.session.base.program))

    @property
    def positions(self) -> tuple[Which, ...]:
        """The columns: the mean over a text, its first positions as far as all texts have them, its last one."""
        if self.values is None:
            return ("mean", -1)
        counts = np.bincount(self.values[self.steps[0]].text)
        first = min(int(counts.min()), 12)  # as many have a column at most
        last = () if int(counts.max()) == first else (-1,)
        return ("mean", *range(first), *last)

    @property
    def missing(self) -> Cell | None:
        """The next cell to be fitted, the last layers first: there most is known."""
        cells = ((row, column) for row in reversed(range(len(self.steps))) for column in range(len(self.positions)))
        return next((cell for cell in cells if cell not in self.found), None)

    def measure(self, cell: Cell, task: Task) -> Mapping[str, Values] | Fitted | str:
        """On the worker: the values of the texts at first, then one probe after another."""
        if self.values is None:
            return values_of(self.session.model, self.labelled.texts, self.steps, task.report)
        name, position = self.steps[cell[0]], self.positions[cell[1]]
        try:
            (made,) = probe(
                {name: self.values[name]}, self.labelled.labels, kind=self.kind, position=position, report=task.report
            )
        except InputError as error:
            return str(error)
        return Fitted(made, tuple(map(self._words, made.directions[:MOST_SAID])))

    def _words(self, direction: Direction) -> tuple[Word, ...]:
        try:
            return tuple(direction.words(self.session.base, 5))
        except InputError:
            return ()

    # In words

    def layer(self, row: int) -> str:
        return [*stream(self.session.base.program).values()][row]

    def position(self, column: int) -> str:
        which = self.positions[column]
        return "mean" if which == "mean" else "last" if which == -1 else str(which)

    @property
    def view(self) -> View:
        """Held-out scores, layers × positions."""
        scores: Host = np.full((len(self.steps), len(self.positions)), np.nan)
        for cell, each in self.found.items():
            scores[cell] = each.probe.score if isinstance(each, Fitted) else np.nan
        rows, columns = Axis("layer", scores.shape[0], self.layer), Axis("position", scores.shape[1], self.position)
        return View("probes", "held-out score", rows, columns, "sequential", window_of(scores), absent="not fitted")

    @property
    def scale(self) -> Scale:
        """From what a probe that reads nothing scores, or below, to all."""
        known = [each.probe for each in self.found.values() if isinstance(each, Fitted)]
        low = min((min(each.score, each.chance) for each in known), default=0.0)
        return scale_for("sequential", max(low, -1.0), 1.0)

    @property
    def numeric(self) -> bool:
        """Whether numbers are told, and not classes."""
        return self.kind == "ridge" and not isinstance(self.labelled.labels[0], str)

    def cell(self, row: int, column: int) -> tuple[str, str]:
        """What a probe scores; and the words along what it reads."""
        if row >= len(self.steps) or column >= len(self.positions):
            return "", ""
        position = self.position(column)
        where = f"{self.layer(row)} · {f'position {position}' if position.isdecimal() else position}"
        each = self.found.get((row, column))
        if each is None:
            return where, "not yet fitted"
        if isinstance(each, str):
            return where, each
        made = each.probe
        score, own = ("R² " * self.numeric + _share(number, numeric=self.numeric) for number in (made.score, made.own))
        chance = "" if self.numeric else f", {_share(made.chance, numeric=False)} by the most frequent class"
        parts = f"{score} of {made.held:,} held out{chance} · {own} of {made.fitted:,} fitted to"
        return f"{where}  {parts}", self._said(each)

    def _said(self, each: Fitted) -> str:
        made = each.probe
        toward = made.classes[1:] if len(made.classes) == 2 else made.classes or ("more",)
        said, word_of = list[str](), self.session.labels.word
        for label, words in zip(toward, each.words, strict=False):
            if words:  # those that are raised, the first most, and those that are lowered
                half = len(words) // 2
                names = [f"{token_label(word_of(word.token))} {minus(f'{word.logit:+.2f}')}" for word in words]
                ends = f"↑ {' '.join(names[:half])} ↓ {' '.join(names[: half - 1 : -1])}"
                said.append(f"toward {visible(str(label))[:24]} {ends}")
        more = f"   and {len(toward) - MOST_SAID:,} more classes" if said and len(toward) > MOST_SAID else ""
        return "   ".join(said) + more or "its direction is on no straight way to words"


def _share(number: float, *, numeric: bool) -> str:
    return minus(f"{number:.3f}") if numeric else f"{number:.1%}".replace("%", " %")


class ProbesScreen(Overview, tool="probes"):
    """Layers × positions: how well labels are read there from texts that nothing was fitted to."""

    WIDGETS = (HeatMap, Legend)

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.kind: ProbeKind = "logistic"
        self.probes: Probes | None = None

    def begin(self) -> None:
        self.show_lines()
        self.call_after_refresh(self.action_file)

    def action_file(self) -> None:
        known = recent("labels")
        now = str(self.probes.path) if self.probes is not None else known[0] if known else ""
        hint = "a label, a tab and a text a line; CSV or JSON lines with the columns text and label"

        def read(text: str) -> tuple[Path, Labelled]:
            path = expanded(text.strip())
            return path, read_labelled(path)

        def begin(found: tuple[Path, Labelled]) -> None:
            remember("labels", str(found[0]))
            labels = found[1].labels  # numbers, and not the names of a few classes
            measured = isinstance(labels[0], int | float) and len(set(labels)) > len(labels) // 2
            self.kind = "ridge" if measured else self.kind
            self._begin(Probes(whole(self.session).unedited, *found, self.kind))

        self.open(*asking("Texts with labels in the file", read, begin, value=now, hint=hint, lately=known))

    def _begin(self, probes: Probes) -> None:
        self.pieces.halt()
        work_on(self, lambda: probes.missing, probes.measure, partial(self._take, probes))
        self.ended, self.probes = False, probes
        self._show(probes)
        self.pieces.go_on()

    def _take(self, probes: Probes, cell: Cell, found: Mapping[str, Values] | Fitted | str) -> None:
        if isinstance(found, Fitted | str):
            probes.found[cell] = found
        else:
            probes.values = found
        self._show(probes)

    def _show(self, probes: Probes) -> None:
        what = "R² of numbers" if probes.numeric else "share that is right"
        show_map(self, probes.view, probes.scale, f"{what}, of texts that were held out")
        self.show_lines()

    def texts(self) -> Texts:
        probes = self.probes
        if probes is None:
            return Texts("Probes", "", ("no texts are read yet", self.port.hint("{open} asks for a file of them")))
        labels, count = probes.labelled.labels, len(probes.labelled.texts)
        what = "numbers" if probes.numeric else f"{len(set(labels)):,} classes"
        total = len(probes.steps) * len(probes.positions)
        return Texts(
            f"Probes · {TITLES[probes.kind]} · {shown_path(probes.path)}",
            f"{count:,} texts · {what}{f' · the model{left}' if (left := left_out(self.session)) else ''}",
            probes.cell(*self.query_one(HeatMap).cursor),
            f"{len(probes.found):,} of {total:,} probes",
        )

    # What keys do

    def action_kind(self) -> None:
        self.kind = following(KINDS, self.kind)
        if self.probes is not None:
            old = self.probes
            self._begin(Probes(old.session, old.path, old.labelled, self.kind, old.values))

    def action_write(self) -> None:
        found = None if self.probes is None else self.probes.found.get(self.query_one(HeatMap).cursor)
        if not isinstance(found, Fitted):
            self.say("there is no probe here yet")
            return
        try:
            direction = found.probe.direction
        except InputError as error:
            self.say(str(error))
            return
        hint = f"{found.probe.step} += 4*probe.npy steers, as --edit and the writing screen take it"

        def write(name: str) -> str:
            path = path_of(name)
            if path.suffix != ".npy":
                raise InputError(f"{visible(path.name)}: a direction is written as NPY: let its name end in .npy")
            direction.save(path)
            return name

        done = self.port.written
        self.open(*asking("Write the direction to", write, done, value="probe.npy", hint=hint, replaces=True))

    def chosen(self) -> None:
        if self.probes is not None:
            row, column = self.query_one(HeatMap).cursor
            which = self.probes.positions[column]
            leave_to(self, self.probes.steps[row], row=which if isinstance(which, int) and which >= 0 else None)
