"""Undo keeps what every state is, and of those that are far away nothing that can be worked out again."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tui_transformer.engine.backend import choose_backend
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.weights import Weights
from tui_transformer.explorer.run import open_session
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.exploration import MOST, NEAR, Exploration, History
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session

LOGITS = "output.logits"


@pytest.fixture
def explored() -> Exploration:
    session = open_session(ModelOptions(model="encoder"), None, None)
    return Exploration(History(session), Position(LOGITS))


def change(explored: Exploration, session: Session) -> None:
    explored.history.push(session)
    explored.stay()
    _ = session.trace[LOGITS]


def test_traces_of_states_that_are_far_away_are_let_go(explored: Exploration):
    traces = []
    for number in range(3 * NEAR):
        change(explored, explored.session.with_text("the cat " * (number + 1)))
        traces.append(weakref.ref(explored.session.trace))
    gc.collect()
    assert [trace() is not None for trace in traces] == [*[False] * (2 * NEAR - 1), *[True] * (NEAR + 1)]


def test_large_traces_of_other_states_are_let_go_and_the_current_one_is_kept(explored: Exploration):
    explored.near_bytes = 0
    traces = []
    for _ in range(NEAR + 1):
        change(explored, explored.session.with_text("the cat " * 20))
        traces.append(weakref.ref(explored.session.trace))
    explored.stay()
    gc.collect()
    assert [trace() is not None for trace in traces] == [*[False] * NEAR, True]


def test_what_was_let_go_is_worked_out_again_when_it_is_undone(explored: Exploration):
    texts = ["the cat", "a dog the cat", "the", "a", "cat a", "dog"]
    before = []
    for text in texts:
        change(explored, explored.session.with_text(text))
        before.append(np.array(explored.session.trace[LOGITS]))
    for text, values in reversed(list(zip(texts, before, strict=True))):
        assert explored.session.text == text
        np.testing.assert_array_equal(explored.session.trace[LOGITS], values)
        explored.history.turn("undo")
        explored.stay()


def test_weights_of_models_that_are_far_away_are_let_go_and_are_the_same_again(explored: Exploration):
    first = explored.session
    weights = first.model.weights
    before = np.array(first.trace[LOGITS])
    held = dict(weights.held)
    assert held
    other = Model.load("encoder", d_model=8, heads=2)
    for text in ["the cat", "a dog", "the", "a"]:
        change(explored, Session(other, text))
        np.asarray(explored.session.trace[LOGITS])
    assert not weights.held
    assert other.weights.held
    while explored.history.turn("undo"):
        explored.stay()
    assert explored.session is first
    np.testing.assert_array_equal(explored.session.trace[LOGITS], before)
    assert {name: array.tobytes() for name, array in weights.held.items()} == {
        name: array.tobytes() for name, array in held.items()
    }


def test_weights_that_were_given_stay():
    backend = choose_backend("cpu", "float32")
    weights = Weights(backend, lambda _, shape: np.zeros(shape), {"given": np.ones(2, np.float32)})
    weights.get("read", (2,))
    weights.let_go()
    assert list(weights.held) == ["given"]


def test_what_is_shared_with_a_state_nearby_stays(explored: Exploration):
    base = explored.session.base
    for number in range(3 * NEAR):
        change(explored, explored.session.with_edits(Edit("embedding.output", (0, 0), float(number))))
    assert explored.session.base is base


def test_only_so_many_changes_can_be_undone():
    history = History(0)
    for number in range(1, MOST + 10):
        history.push(number)
    assert len(history.past) == MOST
    while history.turn("undo"):
        pass
    assert history.current == 9
    assert len(history.all) == MOST + 1
