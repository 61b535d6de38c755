"""What a break makes of the answer, the smallest change that turns it, and sentences on which it matters."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tui_transformer.diagnosis.breaking import BREAKS, Broken
from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session import break_search, other_sentences
from tui_transformer.session.answer_summary import answer, describe
from tui_transformer.session.break_effect import AnswerChange, Outcome, effect_of, outcome, trial
from tui_transformer.session.break_search import Examples, telling_head, turning
from tui_transformer.session.other_sentences import MOST, counterpart, examples

REFERENCES = Path(__file__).parents[1] / "references"


@cache
def opened(model: str, text: str | None = None):
    return open_session(ModelOptions(model=model), text, None)


def silent(_: object) -> None:
    """Nothing is told."""


def test_how_far_an_answer_moves_is_half_the_sum_of_what_all_words_gain_and_lose():
    one, other = (Outcome(np.array(shares), str) for shares in ([0.7, 0.2, 0.1], [0.1, 0.6, 0.3]))
    assert AnswerChange(one, one).size == 0
    assert AnswerChange(one, other).size == pytest.approx(0.6)
    assert AnswerChange(one, Outcome(np.array([0.0, np.nan, 0.0]), str)).size == 1.0
    assert AnswerChange(one, other).said == "0 70.0 % → 1 60.0 %"
    assert AnswerChange(one, Outcome(np.array([0.6, 0.3, 0.1]), str)).said == "0 70.0 % → 60.0 %"
    assert AnswerChange(one, one).said == "changes nothing here: 0 70.0 %"
    assert AnswerChange(one, Outcome(np.array([np.nan] * 3), str)).said == "0 70.0 % → no number"


@pytest.mark.parametrize("name", ["no-scale=0.5", "head:decoder.0.self_attention:1=0.25", "no-residual=1.5"])
def test_the_effect_is_that_of_the_broken_session(name):
    session = opened("copy")
    effect = effect_of(session, Broken.read(name), silent)
    assert str(effect.becomes) == str(answer(session.with_breaks(name)))
    values = effect.after.window(range(effect.after.shape[0]), range(effect.after.shape[1]))
    assert values[effect.at] == session.with_breaks(name).trace[effect.step][effect.cell]


def test_with_the_right_number_nothing_is_broken():
    session = opened("copy")
    for each in BREAKS:
        slider = Broken(each).slider(session.base)
        if slider is not None:
            right = trial(session, Broken(each, slider.right))
            assert AnswerChange(outcome(session, session.trace), outcome(session, right)).size < 1e-6, each.name
            assert slider.low in slider.stops
            assert {slider.high, slider.right} < {*slider.stops}


def test_the_number_of_a_break_is_read_as_it_is_written():
    for text in ("no-scale", "no-scale=0.31", "head:encoder.0.self_attention:2=0.5", "temperature=1e-05", "no-scale=0"):
        assert str(Broken.read(text)) == text
    assert Broken.read("no-scale 0,31").number == 0.31
    no_numbers = ("no-scale=x", "no-scale=-1", "no-scale=nan", "temperature=0")
    for text in ("nonsense", "no-mask=0.5", "no-mask:there", "", *no_numbers):
        with pytest.raises(InputError):
            Broken.read(text)


def test_the_smallest_change_lies_on_the_nearer_side_and_turns_the_answer():
    session = opened("copy")
    made = Broken.read("no-residual")
    slider = made.slider(session.base)
    turn = turning(session, made, slider, silent)
    own = answer(session).name
    assert turn.number is not None
    assert answer(session.with_breaks(f"no-residual={turn.number}")).name == turn.becomes.name != own
    for stop in slider.stops:  # none that is nearer by more than the rounding turns it
        if slider.distance(stop) < slider.distance(turn.number) - 0.02:
            assert answer(session.with_breaks(str(made.at(stop, slider)))).name == own, stop


def test_of_two_numbers_that_turn_the_answer_the_nearer_is_said():
    """On both sides of the right one, by stops that are as near as each other."""
    session = opened(str(REFERENCES / "modernbert"))
    own, made = answer(session).name, Broken.read("no-positions")
    turn = turning(session, made, made.slider(session.base), silent)

    def with_number(number: float) -> str:
        return answer(session.with_breaks(f"no-positions={number:.4g}")).name

    assert turn.number is not None
    assert own not in (with_number(0.95), with_number(1.05), with_number(turn.number))
    assert abs(turn.number - 1) < 0.05


def test_where_nothing_turns_it_that_is_said_of_so_many_numbers():
    session = opened("question")
    made = Broken.read("temperature")
    slider = made.slider(session.base)
    turn = turning(session, made, slider, silent)
    assert turn.number is None
    assert turn.said(made) == "nothing from 0.1 to 4 turns the answer: question with all 39 numbers tried"
    assert turn.tried == len(slider.stops) - 1


def test_a_sentence_on_which_it_matters_is_one_of_the_models_own_and_true():
    session = opened("dates")
    found = Examples(session).search(Broken.read("no-positions"), silent)
    assert found.pair in [*examples(session)]
    other = session.with_text(found.pair[0]).with_decoder_text(found.pair[1])
    assert str(answer(other)) == str(found.change.was)
    assert str(answer(other.with_breaks("no-positions"))) == str(found.change.becomes)
    none = Examples(opened("question")).search(Broken.read("naive-softmax"), silent)
    assert none.said == f"no sentence found on which it matters, of {MOST} tried"


def test_in_a_batch_other_sentences_are_padded_as_this_one_is():
    session = opened("question").with_batch(("where is it ?", "where did the old sailor hide the map ?"))
    made = Broken.read("no-mask")
    found = Examples(session).search(made, silent)
    assert found.tried
    if found.pair is not None:
        there = session.with_text(found.pair[0])
        assert str(answer(there)) == str(found.change.was)
        assert str(answer(there.with_breaks("no-mask"))) == str(found.change.becomes)


def test_other_sentences_take_no_more_memory_than_is_said(monkeypatch):
    monkeypatch.setattr(other_sentences, "MOST", 6)
    session, made = opened("dates"), Broken.read("naive-softmax")
    many = Examples(session)
    found = many.search(made, silent)
    assert len(many._kept) == found.tried > 3
    each = next(iter(many._kept.values())).base.plan.bytes
    monkeypatch.setattr(break_search, "MOST_KEPT", 3 * each)
    few = Examples(session)
    assert few.search(made, silent).said == found.said
    assert 0 < sum(other.trace.held_bytes for other in few._kept.values()) <= 3 * each


def test_the_head_that_is_left_out_is_the_one_that_the_answer_hangs_on():
    session = opened("copy")
    place = telling_head(session, silent)
    heads = [f"decoder.{layer}.self_attention:{head}" for layer in range(2) for head in range(4)]
    sizes = {each: effect_of(session, replace(Broken.read("head"), place=each), silent).size for each in heads}
    assert place == max(heads, key=lambda each: sizes[each])
    assert telling_head(opened("attention"), silent) == "encoder.0.self_attention:0"


@pytest.mark.parametrize("model", ["question", "dates", "copy", "story", "encoder", "decoder", "encoder-decoder"])
def test_a_counterpart_has_as_many_tokens_and_is_another(model):
    session = opened(model)
    other = session.with_text(counterpart(session))
    assert len(other.encoding.tokens) == len(session.encoding.tokens)
    assert other.encoding.ids != session.encoding.ids
    if model in ("question", "dates", "copy", "story"):
        assert answer(other).name != answer(session).name
        assert counterpart(other) == session.text


def test_of_another_sentence_one_word_is_exchanged():
    session = opened("question", "did the baker want the bread ?")
    ours, theirs = session.text.split(), counterpart(session).split()
    assert sum(one != other for one, other in zip(ours, theirs, strict=True)) == 1
    assert session.model.knows(" ".join(theirs))
    assert counterpart(opened("attention")) == ""


def test_the_answer_before_is_that_of_the_masked_word_as_at_the_opening() -> None:
    session = opened(str(REFERENCES / "roberta"), "the <mask> cat")
    assert describe(session, silent) == f"<mask> → {outcome(session, session.trace)}"
