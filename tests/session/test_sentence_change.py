"""What another sentence changes: words beside one another, the answer, and the heads that look elsewhere."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tui_transformer.analysis.attentions import attentions
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session import sentence_change
from tui_transformer.session.answer_summary import answer_position, shares
from tui_transformer.session.sentence_change import aligned, change_of, cost_of_change, words_said
from tui_transformer.session.store import AT_ONCE

SENTENCES = Path(__file__).parents[1] / "sentences"


def silent(_: object) -> None:
    """Nothing is told."""


@cache
def opened(model: str, text: str | None = None, ids: tuple[int, ...] | None = None):
    return open_session(ModelOptions(model=model), text, ids)


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ("a b c", "a b c", [(0, 0), (1, 1), (2, 2)]),
        ("a b c", "a x b c", [(0, 0), (None, 1), (1, 2), (2, 3)]),
        ("a b c", "a c", [(0, 0), (1, None), (2, 1)]),
        ("a b c", "a x y c", [(0, 0), (1, 1), (None, 2), (2, 3)]),
        ("a a", "a", [(0, 0), (1, None)]),
        ("a", "b", [(0, 0)]),
        ("", "a", [(None, 0)]),
        ("a b c d", "x b c y z", [(0, 0), (1, 1), (2, 2), (3, 3), (None, 4)]),
    ],
)
def test_the_same_words_stand_above_one_another_and_others_between_them(before, after, pairs):
    assert list(aligned(before.split(), after.split())) == pairs


def test_of_very_many_other_words_each_stands_above_the_one_in_its_place():
    count = sentence_change.MOST_TO_MATCH + 10
    pairs = aligned(["a", *map(str, range(count)), "z"], ["a", *("x" * (count - 3)), "z"])
    assert pairs[:2] == ((0, 0), (1, 1))
    assert pairs[-2:] == ((count, None), (count + 1, count - 2))


def test_the_answer_has_the_shares_of_both_and_what_became_of_the_words():
    before = opened("question", "where did the old sailor hide the map ?")
    after = before.with_text("the old sailor did hide the new map")
    change = change_of(before, after, silent)
    for line in change.lines[:3]:
        token = next(i for i in range(123) if before.model.target_label(i) == line.label)
        for session, share in ((before, line.was), (after, line.now)):
            assert share == shares(session.trace, answer_position(session))[token]
    assert change.said == "question 99.9 % → statement 99.9 %"
    assert {change.lines[0].moved, change.lines[1].moved} == {"+99.9", "−99.9"}
    assert words_said(before, after) == "where did went, did came, new? came, ? went"
    same = change_of(before, before, silent)
    assert same.said == "question 99.9 %"
    assert same.heads[0].size == 0
    assert change_of(before, before.with_text(f"{before.text} now"), silent).said == "the answer stays question 99.9 %"


def test_how_far_a_head_looks_elsewhere_is_half_the_sum_of_what_all_keys_gain_and_lose():
    before = opened("question", "did the cat sleep")
    after = before.with_text("did the old cat sleep")
    heads = change_of(before, after, silent).heads
    assert [head.size for head in heads] == sorted((head.size for head in heads), reverse=True)
    name = attentions(before.trace.program)[0].name
    was, now = (np.asarray(each.trace[name], np.float64) for each in (before, after))
    beside = np.insert(was, 2, 0.0, axis=2)  # the key `old`
    apart = np.abs(now[:, [0, 1, 3, 4]] - beside)
    for head in heads:
        assert head.size == pytest.approx(apart[head.head].sum() / 2 / 4)
        assert abs(head.now - head.was) == pytest.approx(apart[head.head].max())


def test_words_behind_change_where_the_heads_look_at_the_end_alone():
    before = opened("story", "Once there was a")
    change = change_of(before, before.with_text("Once there was a small"), silent)
    last = len(before.encoding.tokens) - 1
    assert all(head.query[0] == last and head.query[1] > last for head in change.heads if head.size > 1e-6)
    assert change.heads[0].size > 0


def test_of_a_sentence_that_becomes_a_vector_it_is_said_how_far_that_moves():
    before = opened(str(SENTENCES / "bert"), ids=(2, 5, 6, 7, 3))
    after = before.with_text("2, 5, 9, 8, 7, 3")
    change = change_of(before, after, silent)
    was, now = (np.asarray(each.trace[each.trace.program.steps[-1].name], np.float64) for each in (before, after))
    (line,) = change.lines
    assert line.now == pytest.approx(float(was @ now / np.linalg.norm(was) / np.linalg.norm(now)))
    assert change.said.startswith("the vector moves by ")


def test_the_source_and_the_target_of_an_encoder_decoder_are_told_apart():
    before = opened("dates")
    source = change_of(before, before.with_text("the 3rd of June 2021"), silent)
    assert {head.step.group for head in source.heads if head.size} == {
        "encoder self-attention",
        "decoder self-attention",
        "decoder cross-attention",
    }
    target = change_of(before, before.with_decoder_text(""), silent)
    assert not any(head.size for head in target.heads if head.step.stack == "encoder")
    assert target.said.startswith("0 100.0 % → 2 ")


def test_of_too_many_weights_the_heads_are_not_compared(monkeypatch):
    before = opened("question")
    after = before.with_text("the map")
    assert cost_of_change(before, after) < AT_ONCE
    monkeypatch.setattr(sentence_change, "MOST_WEIGHTS", 100)
    change = change_of(before, after, silent)
    assert change.heads == ()
    assert change.lines
