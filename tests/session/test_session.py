from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.engine.edits import Ablate, Edit
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.engine.targets import parse
from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.guide.texts import Stop
from tui_transformer.model.options import ModelOptions
from tui_transformer.records import replace
from tui_transformer.session.edit_format import as_written, written
from tui_transformer.session.pane_fit import shown_at
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.softmax_row import scores_row
from tui_transformer.session.view_state import BEFORE, CYCLES, NOTHING, Overlay, Size, ViewState
from tui_transformer.views.step_view import view_of

WEIGHTS = "encoder.0.self_attention.weights"
OTHER = "will the old sailor hide the map"


@pytest.fixture(scope="module")
def question() -> Session:
    return open_session(ModelOptions("question", device="cpu"), None, None)


def test_a_sentence_without_a_word_is_refused(question: Session):
    for text in ("", "   "):
        with pytest.raises(InputError, match="the sentence has no tokens: write at least one word"):
            question.with_text(text)
        with pytest.raises(InputError, match="the sentence has no tokens"):
            open_session(ModelOptions("question", device="cpu"), text, None)


def test_tokens_of_the_target_lie_where_they_were_typed():
    session = open_session(ModelOptions("dates", device="cpu"), None, None).with_decoder_text("2021-05")
    start, *written = session.decoder_encoding.tokens
    assert (start.start, start.end) == (0, 0)
    assert session.decoder_encoding.text == "2021-05"
    assert [session.decoder_encoding.text[token.start : token.end] for token in written] == list("2021-05")
    assert [token.start for token in written] == list(range(7))


def test_what_is_compared_with_ends_where_it_has_other_tokens_or_was_of_edits_of_them(question):
    edited = question.with_edits(Edit(WEIGHTS, (0, 0, 0), 5.0)).with_overlay(BEFORE)
    assert edited.with_text(OTHER).overlay == NOTHING
    assert edited.with_text(question.text).overlay == NOTHING
    # edits of weights go on being compared
    edited = question.with_edits(Edit("encoder.0.feed_forward.hidden.weight", (0, 0), 5.0)).with_overlay(BEFORE)
    assert edited.with_text(OTHER).overlay == BEFORE
    # a dump is beside no other tokens
    values = parse("head:encoder.0.self_attention:0").edits(question.base.program)
    compared = question.with_overlay(Overlay("trace", "dump.npz", values=tuple(values)))
    assert compared.with_text(question.text).overlay == compared.overlay
    assert compared.with_text(OTHER).overlay == NOTHING
    # another sentence stays beside what is written
    compared = question.with_overlay(Overlay("trace", "other", text=OTHER))
    assert compared.with_text("the dog").overlay == compared.overlay


def test_a_view_names_the_cells_that_were_set_and_the_rows_of_a_head_that_is_taken_out(question):
    edited = question.with_edits(Edit(WEIGHTS, (1, 2, 3), 5.0))
    view = view_of(edited.trace, WEIGHTS, edited.labels, head=1)
    assert view.edited == ((range(2, 3), range(3, 4)),)
    assert not view_of(edited.trace, WEIGHTS, edited.labels, head=0).edited
    assert not view_of(question.trace, WEIGHTS, question.labels, head=1).edited
    # a head
    (edit,) = parse("head:encoder.0.self_attention:2").edits(question.base.program)
    assert isinstance(edit, Ablate)
    trace = question.with_edits(edit).trace
    rows, columns = trace.program.shape(edit.name)[-2:]
    assert view_of(trace, edit.name, question.labels, head=2).edited == ((range(rows), range(columns)),)


def test_the_next_choice_follows_on_what_there_is_room_for(question) -> None:
    sizes = {True: Size(160, 45), False: Size(80, 24)}
    for (kind, wide), cycle in CYCLES.items():
        session = replace(question, overlay=Overlay(kind))
        for wanted in ("both", "value", "overlay", "difference"):
            shown, following = (shown_at(session, ViewState(wanted), sizes[wide], by) for by in (0, 1))
            assert shown == (wanted if wanted in cycle else cycle[0])
            assert following == cycle[(cycle.index(shown) + 1) % len(cycle)]


def test_token_ids_are_the_text_that_is_read_as_them_and_else_their_words():
    session = open_session(ModelOptions("story", device="cpu"), None, (433, 299, 351, 429))
    assert session.encoding.text == "Mira and Ben"
    words = [session.encoding.text[token.start : token.end].strip() for token in session.encoding.tokens]
    assert words == ["Mi", "ra", "and", "Ben"]
    assert session.ids == session.with_text(session.encoding.text).encoding.ids
    asunder = open_session(ModelOptions("story", device="cpu"), None, (48, 76))  # read as one token
    assert asunder.encoding.ids == (48, 76)
    assert asunder.encoding.text == "M i"


def test_padding_is_no_target_of_the_loss_which_is_that_of_the_sentence_alone():
    texts = ("Once there was a cat", "Mira and Ben")
    alone = open_session(ModelOptions("story", device="cpu"), texts[1], None)
    padded = alone.with_batch(texts, 1)
    assert padded.loss_targets == (*alone.loss_targets, NOT_COUNTED)
    ids = open_session(ModelOptions("story", device="cpu"), None, (*alone.encoding.ids, 0, 0))
    for session in (padded, ids):
        assert session.gradients.counted == alone.gradients.counted == 3
        assert session.gradients.loss == pytest.approx(alone.gradients.loss, rel=1e-5)
    one = open_session(ModelOptions("story", device="cpu"), None, (321, 0, 0))  # nothing follows a single token
    assert one.answers_once
    assert one.gradients.counted == 1


def test_padding_is_no_target_and_predicts_none():
    padded = open_session(ModelOptions("story", device="cpu"), None, (5, 6, 7, 0, 0), mask=(1, 1, 1, 0, 0))
    assert padded.loss_targets == (6, 7, -1, -1, -1)
    alone = open_session(ModelOptions("story", device="cpu"), None, (5, 6, 7))
    assert padded.gradients.loss == pytest.approx(alone.gradients.loss, rel=1e-6)
    # of a single token the model's own answer is one
    single = open_session(ModelOptions("story", device="cpu"), None, (5, 0), mask=(1, 0))
    assert single.answers_once
    assert single.loss_targets[1:] == (-1,)


@pytest.mark.parametrize("mean", [False, True])
def test_a_whole_head_that_is_ablated_is_so_in_another_sentence_and_a_position_is_not(mean):
    session = open_session(ModelOptions(model="story"), "the fox", None)
    program, attention = session.base.program, "decoder.0.self_attention"
    head, position = (parse(each).edits(program, mean=mean) for each in (f"head:{attention}:1", "position:0"))
    longer = "the fox found a crow"
    for other in (
        session.with_edits(*head, *position).with_text(longer),
        session.with_edits(*head, *position).with_overlay(Overlay("trace", "other", text=longer)).other,
    ):
        right = open_session(ModelOptions(model="story"), longer, None)
        edited = right.with_edits(*parse(f"head:{attention}:1").edits(right.base.program, mean=mean))
        assert len(other.edits) == 1
        assert np.array_equal(other.trace["output.logits"], edited.trace["output.logits"])
    alone = open_session(ModelOptions(model="story"), None, (5,))  # the row of the only token is that token
    gone = alone.with_edits(*parse("position:0").edits(alone.base.program, mean=mean))
    assert gone.with_text(longer).edits == ()


def test_a_stop_of_a_tour_without_a_sentence_leaves_what_is_read_as_it_is():
    of_ids = open_session(ModelOptions("dates", device="cpu"), None, (5, 6, 7, 8), decoder_ids=(2, 6))
    there = of_ids.for_tour(Stop("a", "A", "a", "tokens", target="20"))
    assert (there.encoding.ids, there.decoder_text, there.decoder_ids) == ((5, 6, 7, 8), "20", None)
    assert of_ids.for_tour(Stop("a", "A", "a", "tokens", sentence="5 may")).decoder_ids == (2, 6)
    of_many = open_session(ModelOptions("dates", device="cpu"), "5 may", None).with_batch(("5 may", "12 april"))
    there = of_many.for_tour(Stop("a", "A", "a", "tokens", target="20"))
    assert (there.batch, there.encoding.ids) == (of_many.batch, of_many.encoding.ids)


def test_a_stop_of_a_tour_with_a_sentence_is_of_that_sentence_alone():
    bert = ModelOptions(str(REFERENCES / "bert"), device="cpu")
    there = open_session(bert, "The waves", None, pair="a shore").for_tour(Stop("a", "A", "a", "tokens", sentence="a"))
    assert there.encoding.ids == open_session(bert, "a", None).encoding.ids


@pytest.mark.parametrize("value", ["nan", "-2*NaN"])
def test_a_step_is_changed_by_no_nan_and_no_file_is_looked_for(question: Session, value):
    with pytest.raises(InputError, match=f"{WEIGHTS} can be changed by a number, not by NaN"):
        written(question.base.program, f"{WEIGHTS} *= {value}")


def test_a_step_that_is_there_only_in_a_broken_model_can_be_edited_beside_the_unbroken_one(question: Session):
    name = "encoder.0.self_attention.residual_stream"
    edited = question.with_breaks("no-residual").with_edits(Edit(name, (1, 1), 5.0))
    assert edited.trace[name][1, 1] == 5.0
    assert edited.other.edits == ()
    assert np.array_equal(edited.other.trace["output.logits"], question.trace["output.logits"])


def test_an_edit_of_every_row_is_written_as_one_on_a_sentence_of_another_length(question: Session):
    edit = written(question.base.program, "embedding.output[:, 28] *= 0.5").change(question.model)
    for text in ("who did it ?", "who did it ? who did it ? where is the map ?"):
        other = question.with_edits(edit).with_text(text)
        (line,) = (as_written(each, other.base.program) for each in other.edits)
        again = question.with_text(text)
        again = again.with_edits(written(again.base.program, line).change(again.model))
        assert np.array_equal(again.trace["output.logits"], other.trace["output.logits"])


def test_the_labels_of_a_sentence_have_a_softmax_and_no_mean_over_positions():
    session = open_session(ModelOptions(str(REFERENCES.parent / "classifiers/opt"), device="cpu"), None, (5, 6, 7))
    row = scores_row(session, Position("output.probabilities"))
    assert row is not None
    assert row.where == "output.probabilities"
    assert np.array_equal(row.scores(session), session.trace["output.logits"])
    with pytest.raises(InputError, match="logits has no rows: it has no mean over positions"):
        session.with_edits(written(session.base.program, "output.logits = mean").change(session.model))
