"""The answer of a model before and after edits, in one line."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tui_transformer.analysis.effects import Effect, answer_positions, answer_step, effect
from tui_transformer.engine.number_format import spoken
from tui_transformer.session.answer_summary import Guess, guesses, metric_of, metric_said
from tui_transformer.session.session import Session

MOST_LIKELY = 3

Report = Callable[[str], None]


@dataclass(frozen=True)
class Answers:
    """The most likely tokens before and after; no tokens where the model has no vocabulary head.

    Attributes:
        metric: What is measured, in words; "" for the usual.
    """

    where: str
    before: tuple[Guess, ...]
    after: tuple[Guess, ...]
    effect: Effect
    metric: str = ""

    @property
    def line(self) -> str:
        """`answer at position 7, !: the 12.3 % … → a 9.0 % …, change of ln p(the) −0.31, divergence 0.05`."""
        effect = self.effect
        if effect.value is not None and effect.change is not None:
            was = effect.value - effect.change
            moved = f"{self.metric} {spoken(was, 4)} → {spoken(effect.value, 4)} ({signed(effect.change)})"
            return f"answer at {self.where}: {_listed(self.before)} → {_listed(self.after)} · {moved}"
        if effect.change is None or effect.divergence is None:
            return f"relative change of {self.where} {signed(effect.size)[1:]}"
        change = f"change of ln p({self.before[0].name}) {signed(effect.change)}"
        moved = f"{change}, divergence {effect.divergence:.3g} nats"
        return f"answer at {self.where}: {_listed(self.before)} → {_listed(self.after)} · {moved}"


def answers(before: Session, after: Session, report: Report) -> Answers:
    """The answer where the model gives it, before and after edits; `report` may raise to end it."""
    for session in (before, after):
        session.trace.compute((answer_step(session.trace),), before=lambda step: report(step.name))
    positions = answer_positions(before.trace, folder=before.model.folder)
    effect_of_edits = effect(before.trace, after.trace, positions, metric=metric_of(before))
    if effect_of_edits.change is None:
        return Answers(answer_step(before.trace), (), (), effect_of_edits)
    where = position_text(before, positions.start)
    was, is_now = (guesses(session, positions.start, MOST_LIKELY) for session in (before, after))
    return Answers(where, was, is_now, effect_of_edits, metric_said(before))


def position_text(session: Session, position: int) -> str:
    """`position 7, !`."""
    axis = session.trace.program.axes(answer_step(session.trace))[-2]
    label = session.labels.of(axis)(position)
    return f"position {position}" + (f", {label}" if label != str(position) else "")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, which is one character wide."""
    return "+?" if math.isnan(value) else f"{'+' * (value >= 0)}{spoken(value, digits)}"


def _listed(guesses: tuple[Guess, ...]) -> str:
    return ", ".join(map(str, guesses))
