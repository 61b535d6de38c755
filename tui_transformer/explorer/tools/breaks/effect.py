"""The effect of a break: the first step that comes out otherwise, by how much, and the answer before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tui_transformer.diagnosis.breaking import Break
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.explorer.state.answer import Guess, answer, answers, percent
from tui_transformer.explorer.state.session import Session

Report = Callable[[str], None]

MOST_DIGITS = 6
"""Decimals of a percentage at most."""


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
    """

    step: str
    index: Index
    before: float
    after: float
    changed: int
    steps: int
    answers: tuple[Guess, Guess] | None

    @property
    def said(self) -> str:
        """The answer before → after; of a model that answers nothing, how many steps change."""
        if self.answers is None:
            return f"{self.changed} of {self.steps} steps change" if self.step else "no step changes"
        was, becomes = self.answers
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
    first, changed = None, 0
    for name in steps:
        report(name)
        largest = _largest(session.trace[name], after.trace[name])
        changed += largest is not None
        first = first or (largest and (name, *largest))
    both = (answer(session, report=report), answer(after, report=report)) if answers(session) else None
    step, index, was, becomes = first or ("", (), 0.0, 0.0)
    return Effect(step, index, was, becomes, changed, len(steps), both)


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
