from __future__ import annotations

import pytest

from tui_transformer.engine.edits import Ablate, Edit
from tui_transformer.engine.targets import parse
from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import BEFORE, CYCLES, NOTHING, Overlay, next_shown, shown_in
from tui_transformer.views.step_view import view_of

WEIGHTS = "encoder.0.self_attention.weights"
OTHER = "will the old sailor hide the map"


def opened(model: str) -> Session:
    return open_session(ModelOptions(model, device="cpu"), None, None)


@pytest.fixture(scope="module")
def question() -> Session:
    return opened("question")


@pytest.mark.parametrize("text", ["", "   "])
def test_a_sentence_without_a_word_is_refused(question: Session, text: str):
    with pytest.raises(InputError, match="the sentence has no tokens: write at least one word"):
        question.with_text(text)
    with pytest.raises(InputError, match="the sentence has no tokens"):
        open_session(ModelOptions("question", device="cpu"), text, None)


def test_tokens_of_the_target_lie_where_they_were_typed():
    session = opened("dates").with_decoder_text("2021-05")
    start, *written = session.decoder_encoding.tokens
    assert (start.start, start.end) == (0, 0)
    assert session.decoder_encoding.text == "2021-05"
    assert [session.decoder_encoding.text[token.start : token.end] for token in written] == list("2021-05")
    assert [token.start for token in written] == list(range(7))


def test_what_was_compared_with_before_the_edits_ends_with_the_edits(question):
    edited = question.with_edits(Edit(WEIGHTS, (0, 0, 0), 5.0)).with_overlay(BEFORE)
    assert edited.with_text(OTHER).overlay == NOTHING
    assert edited.with_text(question.text).overlay == NOTHING


def test_edits_of_weights_go_on_being_compared_on_another_sentence(question):
    name = "encoder.0.feed_forward.hidden.weight"
    edited = question.with_edits(Edit(name, (0, 0), 5.0)).with_overlay(BEFORE)
    assert edited.with_text(OTHER).overlay == BEFORE


def test_a_dump_is_beside_no_other_tokens(question):
    values = parse("head:encoder.0.self_attention:0").edits(question.base.program)
    compared = question.with_overlay(Overlay("trace", "dump.npz", values=tuple(values)))
    assert compared.with_text(question.text).overlay == compared.overlay
    assert compared.with_text(OTHER).overlay == NOTHING


def test_another_sentence_stays_beside_what_is_written(question):
    compared = question.with_overlay(Overlay("trace", "other", text=OTHER))
    assert compared.with_text("the dog").overlay == compared.overlay


def test_a_view_names_the_cells_that_were_set(question):
    edited = question.with_edits(Edit(WEIGHTS, (1, 2, 3), 5.0))
    view = view_of(edited.trace, WEIGHTS, edited.labels, head=1)
    assert view.edited == ((range(2, 3), range(3, 4)),)
    assert not view_of(edited.trace, WEIGHTS, edited.labels, head=0).edited
    assert not view_of(question.trace, WEIGHTS, question.labels, head=1).edited


def test_a_view_names_the_rows_of_a_head_that_is_taken_out(question):
    (edit,) = parse("head:encoder.0.self_attention:2").edits(question.base.program)
    assert isinstance(edit, Ablate)
    trace = question.with_edits(edit).trace
    rows, columns = trace.program.shape(edit.name)[-2:]
    assert view_of(trace, edit.name, question.labels, head=2).edited == ((range(rows), range(columns)),)


@pytest.mark.parametrize("wide", [True, False])
def test_the_next_choice_follows_on_what_there_is_room_for(wide: bool) -> None:
    for (kind, is_wide), cycle in CYCLES.items():
        for wanted in ("both", "value", "overlay", "difference"):
            if is_wide is wide:
                shown = shown_in(kind, wanted, wide=wide)
                assert next_shown(kind, wanted, wide=wide) == cycle[(cycle.index(shown) + 1) % len(cycle)]
