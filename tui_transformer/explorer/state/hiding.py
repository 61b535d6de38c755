"""Attention without some tokens: what is left of every row sums to 1 again. The computation is not changed by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tui_transformer.analysis.attentions import is_attention, renormalized
from tui_transformer.analysis.tokens import Hidden, tokens_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Value
from tui_transformer.explorer.state.session import Session
from tui_transformer.views.step_view import Place, view_of
from tui_transformer.views.view import Values, View


def hidden_keys(session: Session, name: str, choice: Hidden) -> Host | None:
    """True for every key that is left out of a step of attention weights; None where none is."""
    step = session.trace.program.by_name.get(name)
    if not choice.active or step is None or not is_attention(step):
        return None
    hidden = tokens_of(session.trace, session.model.vocabulary, step.axes[-1]).hidden(choice)
    return hidden if hidden.any() else None


def without_hidden(session: Session, view: View, choice: Hidden) -> View:
    """A view of attention weights without the hidden keys, which are masked; any other view as it is."""
    hidden = hidden_keys(session, view.name, choice)
    if hidden is None:
        return view

    def window(rows: range, columns: range) -> Values:
        part = slice(columns.start, columns.stop)
        left = renormalized(view.window(rows, range(view.columns.size)), hidden)[:, part]
        return np.where(hidden[part], np.nan, left)

    return replace(view, window=window)


def weight_left(session: Session, name: str, place: Place, choice: Hidden) -> tuple[Value, ...]:
    """The weight that is drawn while tokens are hidden, and the stored one, which is the one that is explained."""
    hidden = hidden_keys(session, name, choice)
    if hidden is None:
        return ()
    view = view_of(session.trace, name, session.labels, head=place.head)
    row = view.window(range(place.row, place.row + 1), range(view.columns.size))
    left = float(renormalized(row, hidden)[0, place.column])
    note = "key hidden" if hidden[place.column] else "renormalised"
    return Value("as drawn", left, note=note), Value("as stored", float(row[0, place.column]), note="explained here")
