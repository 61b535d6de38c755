"""What a break makes of the answer, and the step where it acts, before and after.

How far an answer moves is ½ Σ |p − q| over all words, the total variation distance: 0 where nothing changes, 1 where
all of the probability is elsewhere. Of a model that gives a vector x it is ‖x' − x‖ ÷ ‖x‖.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.effects import answer_step
from tui_transformer.diagnosis.breaking import Broken, broken
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.engine.program import LABEL
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass, replace
from tui_transformer.session.answer_summary import NO_NUMBER, Guess, answer_position, answers, percent, shares
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import place_of, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Axis, Scale, View, around, window_of

NO_CHANGE = 5e-5
"""An answer that moves by less has not changed: it would be written as 0.00 %."""

MUCH = 0.001
"""An answer that moves by as much has changed, though the share of its word is written as before."""

MOST_ROWS, MOST_COLUMNS = 48, 64
"""Rows and columns around the cell that changes most which are handed over."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model answers.

    Attributes:
        values: The shares of all words or labels; of a model that gives neither, a vector.
        label: The word of each, safe to show; None of a vector.
    """

    values: Host
    label: Callable[[int], str] | None

    @property
    def best(self) -> int:
        """The likeliest; −1 where there are no shares, or they are no numbers."""
        return -1 if self.label is None or not np.isfinite(self.values).all() else int(self.values.argmax())

    def guess(self, index: int) -> Guess:
        """A word and its share."""
        return Guess(NO_NUMBER if index < 0 or self.label is None else self.label(index), float(self.values[index]))

    def __str__(self) -> str:
        """`question 99.9 %`; of a vector, its length."""
        if self.label is None:
            return f"a vector of length {spoken(float(np.linalg.norm(self.values)), 4)}"
        return str(self.guess(self.best)) if self.best >= 0 else NO_NUMBER

    @property
    def name(self) -> str:
        """The word."""
        return self.guess(self.best).name


def outcome(session: Session, trace: Trace, report: Report = lambda _: None) -> Outcome:
    """What a trace of a session answers: a word, a label or a vector; `report` may raise to end it."""
    if answers(session):
        return Outcome(shares(trace, answer_position(session), report), session.model.target_label)
    last = trace.program.steps[-1]
    if last.axes[-1].name == LABEL and last.name.endswith("probabilities"):
        rows, words = values_of(trace, last.name, report).reshape(-1, last.shape[-1]), last.axes[-1].words
        return Outcome(rows[0], lambda at: visible(words[at]) if words else f"label {at}")
    return Outcome(values_of(trace, answer_step(trace), report).ravel(), None)


def values_of(trace: Trace, name: str, report: Report) -> Host:
    """The values of a step in float64, computed if they are not there; `report` may raise to end it."""
    trace.compute((name,), before=lambda step: report(step.name))
    values: Host = trace[name].astype(np.float64)
    return values


@dataclass(frozen=True, eq=False)
class AnswerChange:
    """An answer before and after something is done to the model, or to what it reads."""

    was: Outcome
    becomes: Outcome

    @cached_property
    def size(self) -> float:
        """How far one answer is from the other, from 0; see above."""
        one, other = self.was.values, self.becomes.values
        if one.shape != other.shape or not np.isfinite(other).all():
            return 1.0
        if self.was.label is None:
            return float(np.linalg.norm(other - one) / (np.linalg.norm(one) or 1.0))
        return float(np.abs(other - one).sum() / 2)

    @property
    def turns(self) -> bool:
        """Whether the answer becomes another word."""
        return self.was.best != self.becomes.best

    @property
    def changes(self) -> bool:
        """Whether it becomes another, or another share of the same word, as they are written."""
        if self.was.label is None or self.size < NO_CHANGE or self.turns:
            return self.size >= NO_CHANGE
        parts = self._shares(".2%")
        return self.size >= MUCH or parts[0] != parts[1]

    @property
    def said(self) -> str:
        """`question 99.9 % → statement 62.1 %`, the word once where it stays."""
        if not self.changes:
            return "changes nothing here" + (f": {self.was}" if self.was.label is not None else "")
        if self.was.label is None:
            return f"moves by {in_percent(self.size)}"
        if self.turns or self.becomes.best < 0:
            return f"{self.was} → {self.becomes}"
        parts = self._shares()
        return f"{self.was.name} {' → '.join(parts if parts[0] != parts[1] else self._shares('.2%'))}"

    def _shares(self, form: str = "") -> tuple[str, str]:
        one, other = (each.guess(each.best).share for each in (self.was, self.becomes))
        return (in_percent(one, form), in_percent(other, form)) if form else (percent(one), percent(other))

    @property
    def likeliest(self) -> Sequence[int]:
        """The words of both answers, the likeliest first; none of vectors."""
        if self.was.label is None:
            return ()
        both = np.fmax(self.was.values, self.becomes.values)
        order: list[int] = np.argsort(-both, kind="stable").tolist()
        return order


# The effect of one break


@dataclass(frozen=True, eq=False)
class BreakEffect(AnswerChange):
    """The effect of a break on a sentence.

    Attributes:
        made: The break.
        step: The step where the break acts: the first that changes, or the first that is computed otherwise.
        cell: Its cell that changes most.
        before: The cells around that before.
        after: The same cells with the break.
        scale: The colours of both.
        at: The cell's row and column in them.
    """

    made: Broken
    step: str
    cell: Index
    before: View
    after: View
    scale: Scale
    at: tuple[int, int]


def whole(session: Session) -> Session:
    """The session with nothing broken."""
    return session.with_breaks() if session.breaks else session


def trial(session: Session, made: Broken) -> Trace:
    """The trace of a session that nothing is broken in, with a break; edits stay as far as their steps are there."""
    trace = broken(session.base, (str(made),))
    known = trace.program
    kept = [edit for edit in session.edits if edit.name in known.by_name or edit.name in known.weights]
    return trace.edited(kept) if kept else trace


def effect_of(session: Session, made: Broken, report: Report) -> BreakEffect:
    """Effect of a break on a session that nothing is broken in; `report` may raise to end it."""
    before, after = session.trace, trial(session, made)
    was, becomes = outcome(session, before, report), outcome(session, after, report)
    step, cell = _where_it_acts(before, after, made, report)
    views, at = _around(session, (before, after), step, cell)
    limits = tile_extremes(np.stack([view.window(range(view.shape[0]), range(view.shape[1])) for view in views]))
    scale = scale_for(views[0].kind, *limits)
    return BreakEffect(was, becomes, made, step, cell, *views, scale, at)


def _where_it_acts(before: Trace, after: Trace, made: Broken, report: Report) -> tuple[str, Index]:
    """The first step that changes, and its cell that does most; the first that is computed otherwise, if none does."""
    otherwise = {step.name for step in made.steps(before)}
    names = [step.name for step in before.program.steps if step.name in after.program.by_name]
    first = next((place for place, name in enumerate(names) if name in otherwise), None)
    if first is None:
        raise LookupError(f"{made} changes {sorted(otherwise)}, and none of it is a step of {before!r}")
    for name in names[first:]:
        report(name)
        if (cell := _largest(before[name], after[name])) is not None:
            return name, cell
    return names[first], (0,) * len(before.program.shape(names[first]))


def _largest(before: Host, after: Host) -> Index | None:
    """The cell that changes most by more than roundings; None where none does."""
    most, index = -1.0, ()
    for head in np.ndindex(before.shape[:-2]):  # one at a time: of a long sentence all would take gigabytes
        with np.errstate(invalid="ignore"):
            size = np.where(before[head] == after[head], 0.0, np.abs(after[head].astype(np.float64) - before[head]))
        size = np.where(np.isnan(size), np.inf, size)
        place = np.unravel_index(int(size.argmax()), size.shape)
        if size[place] > most:
            most, index = float(size[place]), (*head, *map(int, place))
    was = abs(float(before[index]))
    return index if most > 1e-5 * max(1.0, was if np.isfinite(was) else 1.0) else None


def _around(
    session: Session, traces: tuple[Trace, Trace], name: str, cell: Index
) -> tuple[tuple[View, View], tuple[int, int]]:
    """The cells around one, before and after, and where it is among them."""
    place = place_of(traces[0].program.axes(name), cell)
    views = [view_of(each, name, session.labels, head=place.head) for each in traces]
    rows = around(place.row, views[0].rows.size, MOST_ROWS)
    columns = around(place.column, views[0].columns.size, MOST_COLUMNS)
    cut = [_part(view, rows, columns) for view in views]
    return (cut[0], cut[1]), (place.row - rows.start, place.column - columns.start)


def _part(view: View, rows: range, columns: range) -> View:
    """Some cells of a view, read now."""

    def side(axis: Axis, part: range) -> Axis:
        return replace(axis, size=len(part), label=lambda at: axis.label(part.start + at))

    down, across = side(view.rows, rows), side(view.columns, columns)
    return replace(view, rows=down, columns=across, window=window_of(view.window(rows, columns)), edited=())
