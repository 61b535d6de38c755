"""The answer of what is explored: the most likely tokens where it is given, and the attention that tells most of it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.analysis.effects import answer_step
from tui_transformer.analysis.metrics import METRICS, Metric, log_shares
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.engine.program import LABEL, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure
from tui_transformer.text.display import SPACE, visible
from tui_transformer.views.step_view import Place

LEAST = 0.0001
"""The least share that is written as a number."""

NO_NUMBER = "no number"


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
        """`question 99.9 %`; of logits that are no numbers no word is the likeliest."""
        return NO_NUMBER if math.isnan(self.share) else f"{self.name} {percent(self.share)}"


def percent(share: float) -> str:
    """A share from 0 to 1: `99.9 %`, `<0.01 %`."""
    if math.isnan(share):
        return "NaN"
    if share == 0:
        return "0 %"
    if 0 < share < LEAST:
        return f"<{in_percent(LEAST, '.2%')}"
    return in_percent(share, ".1%" if share >= 10 * LEAST else ".2%")


def signed_percent(change: float) -> str:
    """A relative change: `+8.7 %`, `−13.3 %`; `<0.01 %` where its size is less."""
    sign = "+" if change >= LEAST else "−" if change <= -LEAST else ""
    return f"{sign}{percent(abs(change))}"


def answers(session: Session) -> bool:
    """Whether the model answers with a token."""
    return bool(session.model.config.vocab_size) and bool(session.trace.program.logits)


def answer_position(session: Session) -> int:
    """Where the model gives its answer: at a masked token where there is one."""
    return session.answer_rows.start


def answer_cost(session: Session) -> int:
    """About how many operations it takes to work the answer out."""
    return session.trace.pending((answer_step(session.trace),))


def shares(trace: Trace, position: int, report: Report = lambda _: None) -> Host:
    """The share of every token at a position, by a softmax in float64; `report` may raise to end it."""
    trace.compute((answer_step(trace),), before=lambda step: report(step.name))
    columns = range(trace.program.shape(trace.program.logits)[1])
    row = trace.window(trace.program.logits, (range(position, position + 1), columns))[0]
    each: Host = np.exp(log_shares(row.astype(np.float64)))
    return each


def guesses(session: Session, position: int, count: int, report: Report = lambda _: None) -> tuple[Guess, ...]:
    """The most likely tokens at a position; `report` may raise to end it."""
    each = shares(session.trace, position, report)
    best = np.argsort(-each, kind="stable")[:count].tolist()
    return tuple(Guess(session.model.target_label(token), float(each[token])) for token in best)


def answer(session: Session, position: int | None = None, report: Report = lambda _: None) -> Guess:
    """The most likely token, by default where the model answers."""
    return guesses(session, answer_position(session) if position is None else position, 1, report)[0]


def describe(session: Session, report: Report) -> str:
    """The most likely word, at a masked token where there is one; the label; or which vectors come out."""
    if answers(session):
        place = session.masked
        likely = str(answer(session, place, report))
        return likely if place is None else f"{session.encoding.tokens[place].text} → {likely}"
    steps = session.trace.program.steps
    weights = [step for step in steps if step.square and step.name.endswith(".weights")]
    if not session.model.config.vocab_size and weights:
        session.trace.compute((weights[-1].name,))
        row = session.trace[weights[-1].name].reshape(-1, weights[-1].shape[-1])[-1]
        key = int(np.nan_to_num(row).argmax())
        likely = f"key {key}: {percent(float(row[key]))}" if np.isfinite(row).all() else NO_NUMBER
        return f"query {weights[-1].shape[-2] - 1} looks at {likely}"
    last = steps[-1]
    session.trace.compute((last.name,), before=lambda step: report(step.name))
    if last.axes[-1].name == LABEL and np.isfinite(session.trace[last.name]).all():
        return _label(session, last)
    return f"gives {shape_text(last.shape)} numbers"


def describe_cost(session: Session) -> int:
    """About how many operations that takes."""
    return answer_cost(session) if answers(session) else session.trace.pending((session.trace.program.steps[-1].name,))


def _label(session: Session, last: Step) -> str:
    """The largest value of the labels; of labels for every token the surest, and of which."""
    values, words = session.trace[last.name], last.axes[-1].words
    rows = values.reshape(-1, values.shape[-1])
    row, column = (int(i) for i in np.unravel_index(int(rows.argmax()), rows.shape))
    label = words[column] if words else f"label {column}"
    value = float(rows[row, column])
    share = percent(value) if last.name.endswith("probabilities") else spoken(value, 4)
    of = ""
    if len(values.shape) > 1 and len(rows) > 1 and row < len(session.encoding.tokens):
        of = f"{session.model.label(session.encoding.tokens[row].text)} → "
    return f"{of}{visible(label)} {share}"


# Where it is seen best


MOST_AT_FIRST = 300_000_000
"""Operations that the first screen may wait for: some hundredths of a second."""


def telling(session: Session) -> Position:
    """The last attention, at the token that the answer is read from, and the word that one of its heads looks at most.

    Itself, and the first token where there are others, are left out: most heads rest there. Where this would take
    longer than a moment to compute, the first head; where there is no attention, the first step.
    """
    last = next(
        (s for s in reversed(session.trace.program.steps) if s.name.endswith(".weights") and len(s.shape) == 3), None
    )
    if last is None or last.name not in session.stops:
        return Position(session.stops[0])
    queries, keys = last.shape[-2:]
    row = min(answer_position(session) if answers(session) else 0, queries - 1)
    if session.trace.pending((last.name,)) > MOST_AT_FIRST:
        return Position(last.name, Place(row=row))
    try:
        session.trace.compute((last.name,))
    except (InputError, MemoryError):  # of a file that became another: the screen says so where it is shown
        return Position(session.stops[0])
    weights = np.nan_to_num(session.trace[last.name][:, row].astype(np.float64))
    if keys > 2 and queries == keys:
        weights[:, [0, row]] = -1
    head, column = divmod(int(weights.argmax()), keys)
    return Position(last.name, Place(head, row, column))


# What ablations and patches are measured by


LOSS: Final = "loss"


def measure_of(session: Session) -> Measure | None:
    """The metric that was chosen; None where none was, or the model has no logits of words."""
    return session.measure if session.trace.program.logits else None


def metric_of(session: Session) -> Metric | None:
    """The same as a metric. The loss without a token is on the targets of the session, which may be computed for it."""
    measure = measure_of(session)
    if measure is None:
        return None
    return Metric(measure.name, measure.tokens, session.loss_targets if on_targets(measure) else ())


def metric_said(session: Session) -> str:
    """The same in words: `logit of had less that of by`; "" where nothing was chosen."""
    measure = measure_of(session)
    if measure is None:
        return ""
    if on_targets(measure):
        return "loss on the targets"
    return METRICS[measure.name].description.format(*map(session.model.target_label, measure.tokens))


def on_targets(measure: Measure | None) -> bool:
    """Whether it is the loss on the targets: then it does not matter where the answer is read."""
    return measure is not None and measure.name == LOSS and not measure.tokens
