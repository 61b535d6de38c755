"""Steps on their way: every moment is true, and the last is the step."""

from __future__ import annotations

import re

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.engine import ops
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.trace import Trace
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.session.session import Session
from tui_transformer.views import flow
from tui_transformer.views.flow import Flow, flow_of
from tui_transformer.views.step_view import Place, view_of
from tui_transformer.views.view import Frame

ATTENTION = "encoder.0.self_attention"
MODELS = (
    "question",
    "encoder-decoder",
    *(str(REFERENCES / name) for name in ("bart", "t5", "gpt_oss", "deberta-v2", "bloom", "olmo2", "cohere")),
    str(REFERENCES.parent / "sentences/bert"),
)
STILL = (ops.Given, ops.Parameter, ops.Concat, ops.ExpertWeights, ops.OfExpert, ops.WeightedExperts)


def opened(model: str, **options: int) -> Session:
    session = open_session(ModelOptions(model, **options), None)
    session.trace.compute()
    return session


@pytest.fixture(scope="module")
def question() -> Session:
    return opened("question")


def way(session: Session, name: str, *, head: int = 0, rows: range | None = None, columns: range | None = None) -> Flow:
    view = view_of(session.trace, name, session.labels, head=head)
    rows, columns = rows or range(view.rows.size), columns or range(view.columns.size)
    found = flow_of(session.trace, view, session.labels, rows, columns, Place(head, rows[0], columns[0]))
    assert found is not None, name
    return found


def done(frame: Frame) -> int:
    """How many products, rows or columns a frame says that it has."""
    return int(re.search(r"so far (\d+)", frame.says)[1])


@pytest.mark.parametrize("model", MODELS)
def test_the_last_moment_of_every_step_is_the_step(model: str):
    session = opened(model)
    trace = session.trace
    for step in trace.program.steps:
        heads = step.axes[0].size if len(step.axes) == 3 else 1
        view = view_of(trace, step.name, session.labels, head=heads - 1)
        first = 0 if isinstance(step.op, ops.Softmax | ops.SoftmaxWithSink) else 1
        rows, columns = (range(min(first, size - 1), min(size, 30)) for size in view.shape)
        place = Place(heads - 1, rows[0], columns[0])
        found = flow_of(trace, view, session.labels, rows, columns, place)
        still = isinstance(step.op, STILL) or (step.name == "output.probabilities" and len(columns) < view.columns.size)
        assert (found is None) is still, step.name
        if found is None:
            continue
        values, last = view.window(rows, columns), found(1.0)
        assert (last.tile.row, last.tile.column) == (rows[0], columns[0])
        shown = np.nan_to_num(last.tile.values) if last.bars else last.tile.values
        np.testing.assert_allclose(shown, values, rtol=1e-4, atol=1e-5, err_msg=step.name)
        for progress in (0.0, 0.3, 0.5, 0.9):
            frame = found(progress)
            assert frame.says.startswith("so far "), step.name
            assert np.isfinite(frame.tile.values[frame.tile.values > -np.inf]).all()


@pytest.mark.parametrize("progress", [0.0, 0.4, 0.9])
def test_scores_are_the_products_so_far(question: Session, progress: float):
    rows, columns = range(2, 7), range(1, 6)
    frame = way(question, f"{ATTENTION}.scores", head=2, rows=rows, columns=columns)(progress)
    count = done(frame)
    query, key = question.trace[f"{ATTENTION}.query"][2], question.trace[f"{ATTENTION}.key"][2]
    sums = query[2:7, :count].astype(float) @ key[1:6, :count].astype(float).T
    np.testing.assert_allclose(frame.tile.values, sums, atol=1e-6)
    meeting = frame.meeting
    assert (meeting.first, meeting.second, meeting.done) == ("q the @2", "k did", count)
    np.testing.assert_allclose(meeting.numbers, [query[2], key[1]])
    assert meeting.value == pytest.approx(sums[0, 0])


def test_rows_of_v_fall_into_one_and_are_named_and_a_bias_is_in_the_sum_from_the_first_product_on(question: Session):
    frame = way(question, f"{ATTENTION}.context", head=1)(0.5)
    weights, values = (question.trace[f"{ATTENTION}.{name}"][1].astype(float) for name in ("weights", "value"))
    np.testing.assert_allclose(frame.tile.values, weights[:, :5] @ values[:5], atol=1e-6)
    assert frame.says == "so far 5 of 9 rows of V (sailor) · weights · V"
    # a bias is in the sum from the first product on
    name, program = "encoder.0.feed_forward.hidden", question.trace.program
    x, weight, bias = (question.trace[each] for each in program.step(name).inputs)
    frame = way(question, name, columns=range(40, 50))(0.25)
    count = done(frame)
    expected = x[:, :count].astype(float) @ weight[:count, 40:50] + bias[40:50]
    np.testing.assert_allclose(frame.tile.values, expected, atol=1e-5)


def test_a_row_becomes_bars_key_by_key_and_then_shares(question: Session):
    scores = question.trace[f"{ATTENTION}.masked"][0].astype(float)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    moves = way(question, f"{ATTENTION}.weights")
    first, second = moves(0.2), moves(0.7)
    assert first.tile.values.shape[1] == done(first) < 9
    np.testing.assert_allclose(first.tile.values, powers[:, : done(first)], atol=1e-6)
    assert first.bars == f"a full bar is 1 · where: sum {powers[0, : done(first)].sum():.3g}"
    assert first.tile.values.max() == 1.0
    rows = done(second)
    np.testing.assert_allclose(second.tile.values[:rows].sum(axis=1), 1.0)
    np.testing.assert_allclose(second.tile.values[rows:], powers[rows:], atol=1e-6)
    assert second.bars == "a full bar is 1 · where: sum 1"


def test_addends_fall_on_each_other_row_by_row_and_rows_arrive_one_after_another(question: Session):
    name = f"{ATTENTION}.residual"
    before, added = (question.trace[each].astype(float) for each in question.trace.program.step(name).inputs)
    frame = way(question, name)(0.5)
    np.testing.assert_allclose(frame.tile.values[: done(frame)], (before + added)[: done(frame)], atol=1e-6)
    np.testing.assert_allclose(frame.tile.values[done(frame) :], before[done(frame) :])
    assert frame.front == done(frame) - 1
    # rows of the table, and of shares that are seen in part
    moves = way(question, "embedding.tokens")
    assert [len(moves(progress).tile.values) for progress in (0.0, 0.5, 1.0)] == [1, 5, 9]
    frame = way(question, f"{ATTENTION}.weights", columns=range(2, 6))(0.5)
    assert not frame.bars
    np.testing.assert_allclose(frame.tile.values, question.trace[f"{ATTENTION}.weights"][0, :5, 2:6])


def test_only_what_is_looked_at_is_read(question: Session, monkeypatch: pytest.MonkeyPatch):
    read = []
    window = Trace.window
    monkeypatch.setattr(
        Trace, "window", lambda trace, name, region, item=0: read.append(region) or window(trace, name, region, item)
    )
    way(question, "output.logits", rows=range(2, 4), columns=range(10, 15))(0.5)
    assert read == [(range(2, 4), range(32)), (range(32), range(10, 15)), (range(10, 15),)]


def test_what_is_set_not_at_hand_or_too_much_does_not_move(question: Session, monkeypatch: pytest.MonkeyPatch):
    def moves(session: Session, name: str = f"{ATTENTION}.scores") -> bool:
        view = view_of(session.trace, name, session.labels)
        return flow_of(session.trace, view, session.labels, range(3), range(3), Place()) is not None

    assert moves(question)
    set_there = question.with_edits(Edit(f"{ATTENTION}.scores", (0, 0, 0), 1.0))
    set_there.trace.compute()
    assert not moves(set_there)
    assert moves(set_there, f"{ATTENTION}.context")
    assert not moves(open_session(ModelOptions("question"), None))  # nothing is computed yet, and nothing is for this
    view = view_of(question.trace, "encoder.0.self_attention.query.weight", question.labels)
    assert flow_of(question.trace, view, question.labels, range(3), range(3), Place()) is None
    monkeypatch.setattr(flow, "MOST_PRODUCTS", 70)
    assert not moves(question)
