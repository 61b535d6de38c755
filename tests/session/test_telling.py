"""Where a session opens: at the attention that tells most of the answer."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.model.options import ModelOptions
from tui_transformer.session import answer_summary
from tui_transformer.session.answer_summary import telling
from tui_transformer.session.open_session import open_session
from tui_transformer.views.step_view import Place


def test_the_question_mark_is_what_the_first_word_looks_at():
    position = telling(open_session(ModelOptions("question")))
    assert (position.stop, position.place) == ("encoder.0.self_attention.weights", Place(2, 0, 8))


@pytest.mark.parametrize("model", ["dates", "copy", "story", "encoder", "decoder", "attention", "encoder-decoder"])
def test_it_is_the_largest_weight_of_the_answer_s_row_beside_itself_and_the_first(model):
    session = open_session(ModelOptions(model))
    position = telling(session)
    weights, place = session.trace[position.stop], position.place
    assert position.stop in session.stops
    row = np.array(weights[:, place.row], dtype=np.float64)
    if weights.shape[1] == weights.shape[2]:
        row[:, [0, place.row]] = -1
    assert row[place.head, place.column] == row.max()


def test_what_would_take_long_is_not_computed_for_it(monkeypatch):
    monkeypatch.setattr(answer_summary, "MOST_AT_FIRST", 0)
    session = open_session(ModelOptions("story"))
    position = telling(session)
    assert session.trace.pending((position.stop,))
    assert position.place.head == 0
