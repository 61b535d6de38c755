"""The answer of a model in a few words, whatever kind of model it is: a word, a label, or vectors alone."""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import LABEL, Step
from tui_transformer.explorer.state.answer import Report, answer, answer_cost, answers, percent
from tui_transformer.explorer.state.session import Session
from tui_transformer.text.display import visible

MASKS = ("[MASK]", "<mask>")
"""A token in whose place a word is predicted."""


def told(session: Session, report: Report) -> str:
    """The most likely word, at a masked token where there is one; the label; or which vectors come out."""
    if answers(session):
        place = _masked(session)
        likely = str(answer(session, place, report))
        return likely if place is None else f"{MASKS[0]} → {likely}"
    if not session.model.config.vocab_size and (weights := _weights(session)) is not None:
        return _most_attended(session, weights)
    last = _last(session)
    session.trace.compute((last.name,), before=lambda step: report(step.name))
    if last.axes[-1].name == LABEL and np.isfinite(session.trace[last.name]).all():
        return _label(session, last)
    return f"gives {shape_text(last.shape)} numbers"


def told_cost(session: Session) -> int:
    """About how many operations that takes."""
    return answer_cost(session) if answers(session) else session.trace.pending((_last(session).name,))


def _weights(session: Session) -> Step | None:
    steps = (step for step in reversed(session.trace.program.steps) if step.square and step.name.endswith(".weights"))
    return next(steps, None)


def _most_attended(session: Session, weights: Step) -> str:
    """Which key the last query looks at most."""
    session.trace.compute((weights.name,))
    row = session.trace[weights.name].reshape(-1, weights.shape[-1])[-1]
    key = int(np.nan_to_num(row).argmax())
    return f"query {weights.shape[-2] - 1} looks at key {key}: {percent(float(row[key]))}"


def _last(session: Session) -> Step:
    return session.trace.program.steps[-1]


def _masked(session: Session) -> int | None:
    """The first token that is masked."""
    if session.model.has_decoder or session.model.config.vocab_size == 0:
        return None
    tokens = session.encoding.tokens
    return next((place for place, token in enumerate(tokens) if token.text in MASKS), None)


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
