"""The statements of the trained models' tours, worked out again: every weight, score and answer that they name."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from tui_transformer.analysis.attentions import Reader, attentions
from tui_transformer.analysis.head_measures import layer_measures
from tui_transformer.engine.targets import parse
from tui_transformer.engine.trace import Trace
from tui_transformer.features.dictionary import Features
from tui_transformer.guide.texts import Stop, tour, tour_model, tours
from tui_transformer.model import Model
from tui_transformer.model.local_models import trained_models
from tui_transformer.trained import about

OF_TRAINED = [name for name in tours() if tour_model(name) in trained_models() and name != "gradients"]
STOPS = {(name, stop.name): stop for name in OF_TRAINED for stop in tour(name)}
NUMBER = re.compile(r"\b[01]\.\d\d\b")
"""A weight or a score; the facts of the first stop have more digits or a unit."""


@cache
def model(name: str, *, features: bool = False) -> Model:
    plain = Model.load(name, device="cpu")
    return plain.with_features(Features.of(plain)) if features else plain


def trace(name: str, sentence: str | None, target: str | None = None, *, features: bool = False) -> Trace:
    return model(name, features=features).trace(sentence, **({} if target is None else {"decoder_text": target}))


def cell(stop: Stop, traced: Trace) -> Any:
    values = traced[stop.step]
    index = (*((stop.head or 0,) if values.ndim == 3 else ()), stop.row, stop.column)
    return values[index[-values.ndim :]]


def named(text: str) -> list[str]:
    return NUMBER.findall(text)


def ablated(traced: Trace, *targets: str) -> Trace:
    return traced.edited(tuple(edit for name in targets for edit in parse(name).edits(traced.program)))


def answer(traced: Trace) -> str:
    """The answer of `question`."""
    return model("question").word(int(traced["output.probabilities"][0].argmax()))


@pytest.mark.parametrize("name", OF_TRAINED)
def test_a_stop_leads_to_a_cell_and_its_first_number_is_that_cell(name: str) -> None:
    for at in tour(name):
        traced = trace(tour_model(name), at.sentence, at.target, features=at.features)
        numbers = [] if at.name in ("model", "product", "added") else named(at.text)
        assert not numbers or f"{cell(at, traced):.2f}" == numbers[0], at.name
        # its sentence is made of known words
        assert not any(token.unknown for token in model(tour_model(name)).encode(at.sentence or "").tokens), at.name


# Question


ANSWERS = {
    "question": ("decided", "only_mark", "question_word", "order"),
    "statement": ("full_stop", "inside", "other_order"),
}


def test_a_sentence_of_the_tour_has_the_answer_that_it_says() -> None:
    for said, stops in ANSWERS.items():
        for stop in stops:
            told = STOPS["question" if stop == "decided" else "question-heads", stop]
            assert answer(trace("question", told.sentence)) == said, stop
    # in the column of the word
    assert model("question").word(STOPS["question", "decided"].column or 0) == "question"


def test_without_both_heads_the_mark_is_lost_and_with_one_it_is_not() -> None:
    stop = STOPS["question-heads", "only_mark"]
    traced = trace("question", stop.sentence)
    heads = [f"head:encoder.0.self_attention:{head}" for head in (2, 3)]
    assert [answer(ablated(traced, head)) for head in heads] == ["question", "question"]
    assert answer(ablated(traced, *heads)) == "statement"
    assert named(stop.text)[1] == f"{traced[stop.step][3, 0, stop.column]:.2f}"


def test_the_heads_of_the_question_look_at_the_mark() -> None:
    # most rows look at the mark
    stop = STOPS["question-heads", "mark"]
    to_mark = trace("question", stop.sentence)[stop.step][stop.head, :, stop.column]
    assert np.mean(to_mark > 0.5) > 0.6
    # without one at the last word
    stop = STOPS["question-heads", "full_stop"]
    row = trace("question", (stop.sentence or "").rstrip(" ."))[stop.step][stop.head, 0]
    assert row.argmax() == len(row) - 1
    one, other = (STOPS["question-heads", name].sentence or "" for name in ("order", "other_order"))
    assert sorted(one.split()) == sorted(other.split())


def told(stop: str) -> tuple[Stop, Trace]:
    """A stop of the story, and the trace of its sentence."""
    return STOPS["question", stop], trace("question", STOPS["question", stop].sentence)


def two_places(value: float) -> str:
    """As the story writes numbers: no 0 in front of the point, a minus that is one character wide."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−") if abs(value) < 1 else f"{value:.2f}"


def test_the_story_follows_the_numbers_of_a_score_to_its_share() -> None:
    # IDs
    stop, traced = told("ids")
    assert re.findall(r"\d+", stop.text) == [str(traced["tokens"][0]), str(traced["tokens"][8])]
    # products of query and key
    stop, traced = told("product")
    attention = "encoder.0.self_attention"
    terms = traced[f"{attention}.query"][2, 0] * traced[f"{attention}.key"][2, 8]
    written = " + ".join(map(two_places, terms))
    scores = traced[f"{attention}.scores"][2, 0]
    assert f"{written} = {scores[8]:.2f}" in stop.text
    # divided by the root of the width
    stop, traced = told("scaled")
    assert f"e^{scores[8]:.2f}" in stop.text
    assert f"it is {scores[8] / 8**0.5:.2f}" in stop.text
    # softmax
    stop, traced = told("softmax")
    scaled = traced["encoder.0.self_attention.scaled"][2, 0].astype(np.float64)
    total = np.exp(scaled - scaled.max()).sum()
    assert f"1 ÷ {total:.4f} = {1 / total:.4f}".replace("= 0.", "= .") in stop.text


def test_the_story_follows_one_value_from_head_to_the_answer() -> None:
    attention = "encoder.0.self_attention"
    stop, traced = told("values")
    assert f"times {traced[f'{attention}.value'][2, 8, 1]:.2f}" in stop.text
    joined, _ = told("joined")
    assert cell(joined, traced) == cell(stop, traced)
    added, _ = told("added")
    before, by, after = (
        traced[name][0, 0] for name in ("embedding.output", f"{attention}.output", f"{attention}.residual")
    )
    assert f"from {before:.2f} by {by:.2f} to {after:.2f}" in added.text
    # what ReLU lets through
    stop, traced = told("feed_forward")
    active = traced[stop.step][0]
    assert "Less than half of the 128 numbers" in stop.text
    assert (active > 0).sum() < active.size / 2 == 64
    assert stop.column == active.argmax()
    assert f"the largest is {active.max():.2f}" in stop.text
    # logits and the answer
    stop, traced = told("decided")
    words = {model("question").word(i): i for i in range(model("question").config.vocab_size)}
    logits = traced["output.logits"][0]
    assert f"question {logits[words['question']]:.2f}, far more than any other" in stop.text
    assert logits[words["question"]] - np.delete(logits, words["question"]).max() > 5
    assert f"{traced['output.probabilities'][0, words['question']]:.4f}".lstrip("0") in stop.text


# Dates


@pytest.mark.parametrize("stop", [stop for name, stop in STOPS if name == "dates"])
def test_the_target_of_a_stop_is_what_the_model_would_write(stop: str) -> None:
    at = STOPS["dates", stop]
    likely = trace("dates", at.sentence, at.target)["output.probabilities"].argmax(axis=1)
    assert "".join(map(model("dates").word, likely[:-1].tolist())) == at.target


def test_the_first_digit_of_a_short_year_is_looked_at_for_the_century_and_digits_of_the_day_are_found() -> None:
    for sentence, written in {"May 3, 21": "2021", "May 3, 81": "1981", "July 30, 49": "2049"}.items():
        traced = trace("dates", sentence, f"{written}-05-03")
        assert traced[STOPS["dates", "century"].step][3, 0].argmax() == len(sentence) - 2
        first = traced["output.probabilities"][:2].argmax(axis=1).tolist()
        assert "".join(map(model("dates").word, first)) == written[:2]
    stop = STOPS["dates", "digits"]
    weights = trace("dates", stop.sentence, stop.target)[stop.step][stop.head]
    assert [weights[row].argmax() for row in (8, 9)] == [10, 11]
    assert weights[[8, 9], [10, 11]].min() > 0.9


# Copy


def test_induction_scores_are_those_of_the_measure() -> None:
    stop = STOPS["copy", "score"]
    traced = trace("copy", stop.sentence)
    step = next(step for step in attentions(traced.program) if step.name == stop.step)
    by_head = layer_measures(traced, step, Reader(model("copy").vocabulary)).values["induction"]
    assert named(stop.text)[1] == f"{by_head[stop.head or 0]:.2f}"
    assert [head for head, score in enumerate(by_head) if score > 0.6] == [0, 1, 3]


def test_without_layer_0_the_induction_head_finds_nothing() -> None:
    stop = STOPS["copy", "two_layers"]
    traced = trace("copy", stop.sentence)
    without = ablated(traced, *(f"head:decoder.0.self_attention:{head}" for head in range(4)))
    assert named(stop.text)[1] == f"{cell(stop, without):.2f}"


def test_heads_of_the_copy_are_needed_or_not_whatever_their_scores() -> None:
    stop = STOPS["copy", "needed"]
    ids, traced = model("copy").encode(stop.sentence or "").ids, trace("copy", stop.sentence)
    half = len(ids) // 2
    for head, copied in ((0, True), (2, False), (3, False)):
        without = ablated(traced, f"head:decoder.1.self_attention:{head}")
        shares = without["output.probabilities"][range(half, len(ids) - 1), ids[half + 1 :]]
        assert (shares.max() > 0.1) == copied
    # the second time every letter is the most likely one
    ids = model("copy").encode(STOPS["copy", "known"].sentence or "").ids
    likely = trace("copy", STOPS["copy", "known"].sentence)["output.probabilities"].argmax(axis=1)
    half = len(ids) // 2
    assert likely[half:-1].tolist() == list(ids[half + 1 :])


# Story


def story(stop: str) -> tuple[Stop, Trace, dict[str, int]]:
    words = model("story").vocabulary
    assert words is not None
    at = STOPS["story", stop]
    return at, trace("story", at.sentence), words.ids


def test_names_and_friends_of_the_story_are_likely_where_they_belong() -> None:
    at, traced, ids = story("girl")
    girls = [ids[f"Ġ{name}"] for name in ("Mira", "Anna", "Lila", "Nora", "Ida")]
    assert at.column in girls
    assert traced["output.probabilities"][at.row, girls].sum() > 0.95
    # another friend in another story
    at = STOPS["story", "friend"]
    traced = trace("story", (at.sentence or "").replace("dog", "crow"))
    assert model("story").word(int(traced["output.probabilities"][-1].argmax())) == "Ġcrow"


FORGOTTEN = [
    ("name", 27, "ĠMira", 0.01),
    ("name", 45, "ĠMira", 0.01),
    ("thing", 40, "Ġred", 0.5),
    ("friend", 51, "Ġdog", 0.1),
]


def test_without_its_head_a_word_is_forgotten_and_without_another_it_is_not() -> None:
    for stop, row, word, most in FORGOTTEN:
        at, traced, ids = story(stop)
        heads = [f"head:{at.step.removesuffix('.weights')}:{head}" for head in range(4)]
        shares = [ablated(traced, head)["output.probabilities"][row, ids[word]] for head in heads]
        assert shares[at.head or 0] < most
        assert traced["output.probabilities"][row, ids[word]] > 0.95


def test_the_stop_without_the_head_names_the_word_that_is_forgotten() -> None:
    at, traced, ids = story("without")
    assert at.column == ids["ĠMira"]
    others = [f"head:decoder.{layer}.self_attention:{head}" for layer in range(3) for head in range(4)]
    likely = {name: ablated(traced, name)["output.probabilities"][at.row, at.column] for name in others}
    assert [name for name, share in likely.items() if share < 0.5] == ["head:decoder.2.self_attention:0"]


def test_stops_say_minutes_shares_and_what_is_done_on_the_screen() -> None:
    # less than a minute is not said in parts of one
    for name in trained_models():
        own = [stop for each in OF_TRAINED if tour_model(each) == name for stop in tour(each)]
        said = [float(number) for stop in own for number in re.findall(r"([\d.]+) minutes", stop.text)]
        minutes = about(name)["minutes"]
        assert said == ([minutes] if minutes >= 1 else [])
    # shares are written as everywhere
    told = [stop.text for name in OF_TRAINED for stop in tour(name)]
    assert sum(" %" in text for text in told) >= 4
    assert not any(re.search(r"\d%", text) for text in told)
    # no stop sends the reader to a shell
    every = [stop for name in tours() for stop in tour(name)]
    assert not [stop.name for stop in every if re.search(r"tui-transformer|--\w|\bpip\b", stop.text)]
