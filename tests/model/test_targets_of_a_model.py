"""Targets of the loss: the default ones, and those that a person writes."""

from __future__ import annotations

import pytest
from refusing import refuses

from tui_transformer.model import Model
from tui_transformer.model.targets import (
    default_targets,
    has_loss,
    own_answer,
    predicts_next,
    read_targets,
    written_targets,
)


@pytest.fixture(scope="module")
def encoder() -> Model:
    return Model.load("encoder")


def test_a_causal_model_predicts_the_next_token_and_any_other_its_own(encoder):
    both = Model.load("decoder").program(4), encoder.program(4)
    assert [default_targets(each, (4, 5, 6, 7)) for each in both] == [(5, 6, 7, -1), (4, 5, 6, 7)]
    assert [predicts_next(each) for each in both] == [True, False]
    trace = encoder.trace(ids=[1, 2, 3])
    # and its own answer is the likeliest token at the first position, where it has logits
    assert own_answer(trace) == (int(trace["output.logits"][0].argmax()), -1, -1)
    assert has_loss(encoder.program(3))
    assert not has_loss(Model.load("attention").program(3))


def test_words_ids_and_minus_one_are_read(encoder, folder):
    for text, targets in (
        ("the waves -1", (1, 2, -1)),
        ("1 2 3", (1, 2, 3)),
        ("1,2,-1", (1, 2, -1)),
        ("1, 2, −1", (1, 2, -1)),
        ("The ! shore", (1, 7, 6)),
        ("  7   the\t0 ", (7, 1, 0)),
    ):
        assert read_targets(encoder, text, 3) == targets
    for targets in ((1, 2, -1), (0, 7, 6), (5, 5, 5)):
        assert read_targets(encoder, written_targets(encoder, targets), 3) == targets
    (folder / "vocabulary.txt").unlink()
    without = Model.load(folder)
    assert read_targets(without, "1 -1", 2) == (1, -1)
    assert written_targets(without, (1, -1)) == "1 -1"
    refuses("is not one token", lambda: read_targets(without, "the 1", 2))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the waves", "2 targets for 3 positions"),
        ("the", "1 target for 3 positions"),
        ("", "0 targets for 3 positions"),
        ("the waves moon", "'moon' is not one token"),
        ("the waves 8", "there is no token 8: IDs go from 0 to 7"),
        ("the waves -2", "there is no token -2"),
        ("-1 -1 -1", "at least one has to be counted"),
        ("1 2 99999999999999999999", "is not one token"),
    ],
)
def test_what_cannot_be_a_target_is_said(encoder, text, said):
    refuses(said, lambda: read_targets(encoder, text, 3))
