"""Where a session is opened if nothing else is said: at the attention that tells most of the answer."""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.program import Step
from tui_transformer.errors import InputError
from tui_transformer.session.answer_summary import answer_position, answers
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.views.step_view import Place

MOST = 300_000_000
"""Operations that the first screen may wait for: some hundredths of a second."""


def telling(session: Session) -> Position:
    """The last attention, at the token that the answer is read from, and the word that one of its heads looks at most.

    Itself, and the first token where there are others, are left out: most heads rest there. Where this would take
    longer than a moment to compute, the first head; where there is no attention, the first step.
    """
    last = next((step for step in reversed(session.trace.program.steps) if _is_attention(step)), None)
    if last is None or last.name not in session.stops:
        return Position(session.stops[0])
    queries, keys = last.shape[-2:]
    row = min(answer_position(session) if answers(session) else 0, queries - 1)
    if session.trace.pending((last.name,)) > MOST:
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


def _is_attention(step: Step) -> bool:
    return step.name.endswith(".weights") and len(step.shape) == 3
