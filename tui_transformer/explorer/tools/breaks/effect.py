"""The effect of a break: the first step that comes out otherwise, by how much, and the answer before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tui_transformer.diagnosis.breaking import Break
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.ops import Softmax
from tui_transformer.session.answer_summary import Guess, answer, answer_position, answers, percent, shares
from tui_transformer.session.session import Session
from tui_transformer.views.step_view import placed

Report = Callable[[str], None]

MOST_DIGITS = 6
"""Decimals of a percentage at most."""

MOST_WORDS, MOST_COLUMNS = 4, 20
"""Words of the answer and columns of a row that are kept, before and after."""


@dataclass(frozen=True)
class Beside:
    """A number without a break and with it; `label` is safe to show."""

    label: str
    before: float
    after: float


@dataclass(frozen=True)
class Row:
    """The cell of a step that changes most, and what lies around it in its row.

    Attributes:
        step: The step.
        index: The cell.
        of: The row, in words; "" where there is one alone.
        cells: The columns around it.
        at: Which of these is its own.
    """

    step: str
    index: Index
    of: str
    cells: tuple[Beside, ...]
    at: int


@dataclass(frozen=True)
class Effect:
    """The effect of a break.

    Attributes:
        step: The first step that changes; "" where none does.
        index: Its cell that changes most.
        before: That cell without the break.
        after: That cell with it.
        changed: Steps that change.
        steps: All steps.
        answers: The answer before and after; None where the model gives none.
        words: The most likely words of both answers.
        rows: The row of the cell, and where that is before a softmax, the row of the first softmax that changes.
    """

    step: str
    index: Index
    before: float
    after: float
    changed: int
    steps: int
    answers: tuple[Guess, Guess] | None
    words: tuple[Beside, ...] = ()
    rows: tuple[Row, ...] = ()

    @property
    def said(self) -> str:
        """The answer before → after; of a model that answers nothing, how many steps change."""
        if self.answers is None:
            return f"{self.changed} of {self.steps} steps change" if self.step else "no step changes"
        was, becomes = self.answers
        if not self.step:
            return f"{was}, as before"
        apart = was.name != becomes.name or percent(was.share) != percent(becomes.share)
        return f"{was} → {becomes}" if apart else f"{was.name} {_closer(was.share, becomes.share)}"


def _closer(before: float, after: float) -> str:
    """Two shares that are written alike, with as many digits as it takes to tell them apart."""
    for digits in range(2, MOST_DIGITS + 1):
        was, becomes = f"{before:.{digits}%}", f"{after:.{digits}%}"
        if was != becomes:
            return f"{was} → {becomes}".replace("%", " %")
    return f"{percent(before)}, as before"


def effect_of(session: Session, broken: Break, report: Report) -> Effect:
    """Effect of a break on a session that nothing is broken in; `report` may raise to end it."""
    after = session.with_breaks(broken.name)
    steps = [step.name for step in session.trace.program.steps if step.name in after.trace.program.by_name]
    first, weights, changed = None, None, 0
    for name in steps:
        report(name)
        largest = _largest(session.trace[name], after.trace[name])
        if largest is not None:
            changed += 1
            first = first or (name, *largest)
            is_softmax = isinstance(session.trace.program.step(name).op, Softmax)
            weights = weights or ((name, largest[0]) if is_softmax else None)
    both = (answer(session, report=report), answer(after, report=report)) if answers(session) else None
    words = _words(session, after) if both else ()
    step, index, was, becomes = first or ("", (), 0.0, 0.0)
    cells = dict.fromkeys(cell for cell in (first and first[:2], weights) if cell)
    rows = tuple(_row(session, after, *cell) for cell in cells)
    return Effect(step, index, was, becomes, changed, len(steps), both, words, rows)


def _words(before: Session, after: Session) -> tuple[Beside, ...]:
    """The words that are most likely before or after."""
    place = answer_position(before)
    was, becomes = shares(before, place), shares(after, place)
    best = np.argsort(-np.fmax(was, becomes), kind="stable")[:MOST_WORDS].tolist()
    return tuple(Beside(before.model.target_label(each), float(was[each]), float(becomes[each])) for each in best)


def _row(before: Session, after: Session, name: str, index: Index) -> Row:
    """A cell with the columns around it."""
    axes, labels = before.trace.program.axes(name), before.labels
    first = min(max(index[-1] - MOST_COLUMNS // 2, 0), max(axes[-1].size - MOST_COLUMNS, 0))
    columns = range(first, min(first + MOST_COLUMNS, axes[-1].size))
    region = (*(range(place, place + 1) for place in index[:-1]), columns)
    was, becomes = (each.trace.window(name, region).ravel().tolist() for each in (before, after))
    cells = tuple(map(Beside, map(labels.of(axes[-1]), columns), was, becomes))
    of = placed(labels.of(axes[-2])(index[-2]), index[-2]) if len(axes) > 1 else ""
    return Row(name, index, of, cells, index[-1] - first)


def _largest(before: Host, after: Host) -> tuple[Index, float, float] | None:
    """The cell that changes most by more than roundings, before and after; None where none does."""
    with np.errstate(invalid="ignore"):
        size = np.where(before == after, 0.0, np.abs(after.astype(np.float64) - before))
    size = np.where(np.isnan(size), np.inf, size)
    index = tuple(map(int, np.unravel_index(int(size.argmax()), size.shape)))
    was, becomes = float(before[index]), float(after[index])
    limit = 1e-5 * max(1.0, abs(was) if np.isfinite(was) else 1.0)
    return (index, was, becomes) if size[index] > limit else None


def cost_of(session: Session) -> int:
    """About how many operations it takes to find one out: a forward pass."""
    program = session.trace.program
    return 2 * sum(map(program.flops, program.steps))
