"""Tours without a screen, and the questions of their stops."""

from __future__ import annotations

import io
import sys

import pytest
from typed_lines import WEIGHTS, typed

from tui_transformer.errors import InputError
from tui_transformer.explorer.plain.keys import Typed, meanings, read
from tui_transformer.explorer.plain.reader import Reader
from tui_transformer.explorer.plain.run import run_plain
from tui_transformer.explorer.shell.user_files import Score, read_score
from tui_transformer.guide.lecture import lecture
from tui_transformer.guide.texts import tour
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.position import Position


def test_a_tour_is_told_stop_by_stop(reader):
    first, second = typed(reader, "t"), typed(reader, "tour")
    assert "Stop 1 of " in first
    assert "Stop 2 of " in second
    assert typed(reader, "tour back") == first


def test_next_is_the_next_stop_in_a_tour_and_a_step_otherwise(reader):
    assert "step 14 of 26" in typed(reader, "next")
    assert "step 13 of 26" in typed(reader, "back")
    first = typed(reader, "tour")
    assert "next or t goes to the next stop; space goes a step on; leave ends the tour." in first
    assert "Stop 2 of " in typed(reader, "next")
    assert "step 3 of 26" in typed(reader, "space")
    assert "Stop 3 of " in typed(reader, "next")
    assert "Stop 2 of " in typed(reader, "back")
    questions = sum(stop.predict is not None for stop in tour("question"))
    last = typed(reader, *["next"] * (len(tour("question")) - 2 + questions))
    assert "next or t goes to the next tour, What do the heads look for?; space goes a step on" in last
    assert "Stop 1 of 9, " in typed(reader, "next")
    questions = sum(stop.predict is not None for stop in tour("question-heads"))
    last = typed(reader, *["next"] * (8 + questions))
    assert "this was the last stop; space goes a step on" in last
    assert "the tour has ended" in typed(reader, "leave")
    assert "Stop 1 of 17, " in typed(reader, "tour")
    assert "step 13 of 26" in typed(reader, "leave")
    assert "step 14 of 26" in typed(reader, "next")


def test_where_keys_are_pressed_no_command_in_words_is_named(session):
    reader = Reader(Exploration(History(session), Position(WEIGHTS)), keymap={"tour": "g"}, by_line=False)
    told = reader.answer(Typed("tour"))
    assert "g goes to the next stop; space goes a step on; esc leaves." in told
    assert " next or " not in told


def test_a_tour_that_is_asked_for_at_the_start_begins_at_once(session, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("next\n"))
    assert run_plain(session, told=lecture("question")) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "Stop 1 of " in first
    assert "Stop 2 of " in second


def test_a_tour_that_is_left_gives_everything_back_and_redo_what_was_changed_in_it(reader):
    before, position = reader.explored.session, reader.explored.position
    assert "leave or esc the end of it" in typed(reader, "help")
    with pytest.raises(InputError, match="tour begins one"):
        typed(reader, "leave")
    for way in ("leave", "esc"):
        typed(reader, *["tour"] * 17)
        assert reader.explored.session is not before or reader.explored.position != position
        assert "the tour has ended" in typed(reader, way)
        assert (reader.explored.session, reader.explored.position) == (before, position)
        assert reader.explored.history.past == []
        assert "Stop 1 of " in typed(reader, "tour")
        typed(reader, way)
    # redo
    typed(reader, "tour", "sentence who hid it ?")
    changed = reader.explored.session
    assert "redo brings back" in typed(reader, "leave")
    typed(reader, "redo")
    assert reader.explored.session is changed
    # the last stop
    with pytest.raises(InputError, match="leave ends the tour"):
        typed(reader, *["tour"] * 31)


def test_a_stop_asks_first_says_what_it_is_made_from_and_counts_answers_alone(reader):
    stops = [stop.name for stop in tour("question")]
    asked = typed(reader, *["tour"] * (stops.index("product") + 1))
    assert "Which shape has “Attention scores”, made from Queries Q 4 × 9 × 8 and Keys K 4 × 9 × 8?" in asked
    assert "Multiplied column" not in asked
    with pytest.raises(InputError, match="answer 2"):
        typed(reader, "answer")
    assert read_score() == Score()
    skipped = typed(reader, "next")
    assert f"Stop {stops.index('product') + 1} of 17, " in skipped
    assert "Multiplied column by column" in skipped
    assert read_score() == Score()
    asked = typed(reader, *["next"] * (stops.index("softmax") - stops.index("product")))
    assert "Before it, Masked scores, encoder.0.self_attention.masked: the row is where 0.4" in asked
    assert "step " not in asked  # one counting
    answered = typed(reader, "answer 2")
    assert answered.startswith("Right. A softmax divides each by the sum of its row: ")
    assert "1 of 1 predicted. Stop 12 of 17, " in answered
    assert "Stop 11 of 17" in typed(reader, "back")
    assert "The row sums to 1." in typed(reader, "next")  # asked once
    assert read_score() == Score(1, 1)


def test_a_question_is_asked_and_its_answer_revealed(reader):
    asked = typed(reader, "]", "]", "p")
    assert asked.startswith("Which word will “where” in head 2 look at most? It may be 1: ")
    assert "4: ? @8; answer and a number" in asked
    assert typed(reader, "answer ?").startswith("Right. ? @8 has the largest score, ")
    assert typed(reader, "predict", "answer nonsense").startswith("You said nonsense. It is ")
    with pytest.raises(InputError, match="nothing was asked"):
        typed(reader, "answer 1")
    assert read("r 2", meanings({})) == Typed("answer", words="2")


def test_another_tour_is_begun_by_its_name_on_its_model(reader):
    before = reader.explored.session
    assert "Stop 1 of 9, One of four heads: " in typed(reader, "tour question_heads")
    assert reader.explored.session.model.name == "question"
    assert "Stop 1 of 9, A trained model: " in typed(reader, "tour dates")
    assert reader.explored.session.model.name == "dates"
    typed(reader, "leave")
    typed(reader, "undo")
    assert reader.explored.session is before
    assert "Stop 1 of 9, One number to lower: " in typed(reader, "tour gradients")
    assert "Stop 2 of 9, " in typed(reader, "tour")
    with pytest.raises(InputError, match="there is no tour 'heads': tour alone goes on"):
        typed(reader, "tour heads")
    assert "Stop 3 of 9, " in typed(reader, "tour next")
