"""The answer of what is explored: the most likely tokens where the model gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.effects import answer_positions, answer_step
from tui_transformer.analysis.metrics import log_shares
from tui_transformer.engine.backend import Host
from tui_transformer.engine.spoken import in_percent
from tui_transformer.explorer.state.session import Session
from tui_transformer.text.display import SPACE

Report = Callable[[str], None]
LEAST = 0.0001
"""The least share that is written as a number."""


@dataclass(frozen=True)
class Guess:
    """A token, with one sign for a space, and its probability."""

    label: str
    share: float

    @property
    def name(self) -> str:
        """The word without the space that it begins with; safe to show."""
        return self.label.strip(SPACE) or self.label

    def __str__(self) -> str:
        """`question 99.9 %`."""
        return f"{self.name} {percent(self.share)}"


def percent(share: float) -> str:
    """A share from 0 to 1: `99.9 %`, `<0.01 %`."""
    if share == 0:
        return "0 %"
    if 0 < share < LEAST:
        return f"<{in_percent(LEAST, '.2%')}"
    return in_percent(share, ".1%" if share >= 10 * LEAST else ".2%")


def signed_percent(change: float) -> str:
    """A relative change: `+8.7 %`, `−13.3 %`; `<0.01 %` where its size is less."""
    sign = "" if abs(change) < LEAST else "+" if change > 0 else "−"
    return f"{sign}{percent(abs(change))}"


def answers(session: Session) -> bool:
    """Whether the model answers with a token."""
    return bool(session.model.config.vocab_size) and bool(session.trace.program.logits)


def answer_position(session: Session) -> int:
    """Where the model gives its answer."""
    return answer_positions(session.trace, folder=session.model.folder).start


def answer_cost(session: Session) -> int:
    """About how many operations it takes to work the answer out."""
    return session.trace.pending((answer_step(session.trace),))


def shares(session: Session, position: int, report: Report = lambda _: None) -> Host:
    """The share of every token at a position, by a softmax in float64; `report` may raise to end it."""
    trace = session.trace
    trace.compute((answer_step(trace),), before=lambda step: report(step.name))
    columns = range(trace.program.shape(trace.program.logits)[1])
    row = trace.window(trace.program.logits, (range(position, position + 1), columns))[0]
    each: Host = np.exp(log_shares(row.astype(np.float64)))
    return each


def guesses(session: Session, position: int, count: int, report: Report = lambda _: None) -> tuple[Guess, ...]:
    """The most likely tokens at a position; `report` may raise to end it."""
    each = shares(session, position, report)
    best = np.argsort(-each, kind="stable")[:count].tolist()
    return tuple(Guess(session.model.target_label(token), float(each[token])) for token in best)


def answer(session: Session, position: int | None = None, report: Report = lambda _: None) -> Guess:
    """The most likely token, by default where the model answers."""
    return guesses(session, answer_position(session) if position is None else position, 1, report)[0]
