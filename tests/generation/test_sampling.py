"""The choice of a token: sampling, rules of a folder, and the same text as of other programs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import plain_numpy
import pytest
from reference import REFERENCES
from refusing import refuses

from tui_transformer.errors import InputError, UsageError
from tui_transformer.generation.rules import RULES, Defaults, Moment, Rules, apply, defaults_of
from tui_transformer.generation.sampling import (
    Settings,
    chosen,
    draw,
    fallen,
    leading,
    probabilities,
    softmax,
    tempered,
    top_k,
    top_p,
)
from tui_transformer.model import Model

# From logits to a token: temperature, top-k, top-p and draws
LOGITS = np.array([1.0, 3.0, 2.0, 3.0, -1.0, 0.5])


def test_temperature_divides_the_logits_of_any_number_of_rows() -> None:
    np.testing.assert_allclose(softmax(tempered(LOGITS, 0.7)), plain_numpy.softmax(LOGITS / 0.7), rtol=1e-12)
    np.testing.assert_allclose(softmax(tempered(LOGITS, 1.0)), softmax(LOGITS), rtol=1e-12)
    rows = np.stack([LOGITS, -LOGITS])
    np.testing.assert_allclose(softmax(tempered(rows, 2.0))[1], softmax(tempered(-LOGITS, 2.0)))
    # 0 takes the first of the most likely
    assert softmax(tempered(rows, 0))[1].tolist() == [0, 0, 0, 0, 1, 0]
    assert probabilities(LOGITS, Settings(temperature=0)).tolist() == [0, 1, 0, 0, 0, 0]
    assert chosen(LOGITS, Settings(temperature=0), 0) == 1
    assert chosen(LOGITS, Settings(greedy=True, temperature=5), 0) == 1
    # a tiny one gives numbers
    shares = probabilities(np.float32([1e4, 0, -np.inf, 1e4]), Settings(temperature=1e-300))
    assert shares.tolist() == [0.5, 0, 0, 0.5]


def test_top_k_keeps_exactly_so_many_and_lower_ids_first() -> None:
    assert np.isfinite(top_k(LOGITS, 1)).nonzero()[0].tolist() == [1]
    assert np.isfinite(top_k(LOGITS, 3)).nonzero()[0].tolist() == [1, 2, 3]
    assert top_k(LOGITS, 0) is LOGITS
    assert np.isfinite(top_k(LOGITS, 99)).all()
    assert leading(LOGITS, 4).tolist() == [1, 3, 2, 0]


def test_top_p_keeps_the_fewest_that_make_up_the_share() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    for share, count in ((0.4, 1), (0.6, 2), (0.8 + 1e-9, 3), (0.96, 4), (1.0, 4)):
        assert np.isfinite(top_p(logits, share)).sum() == count
    shares = probabilities(logits, Settings(top_p=0.7))
    np.testing.assert_allclose(shares, [0.625, 0.375, 0, 0], rtol=1e-12)
    # of a large vocabulary too
    logits = np.random.default_rng(0).normal(0, 3, 5000).round(1)  # many are equal
    shares = softmax(logits)
    order = np.argsort(-shares, kind="stable")
    for share in (0.01, 0.3, 0.9, 0.999):
        count = int(np.searchsorted(np.cumsum(shares[order]), share)) + 1
        assert np.isfinite(top_p(logits, share)).nonzero()[0].tolist() == sorted(order[:count])


def test_tokens_that_make_up_exactly_the_share_are_enough() -> None:
    kept = [np.isfinite(top_p(np.zeros(4), share)).nonzero()[0].tolist() for share in (0.25, 0.5, 0.75)]
    assert kept == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize(("number", "token"), [(0.0, 1), (0.25, 2), (0.5, 4), (np.nextafter(0.5, 0), 2)])
def test_a_draw_at_the_edge_of_a_share_is_of_the_next_one_that_is_not_empty(number: float, token: int) -> None:
    assert fallen(np.array([0.0, 0.25, 0.25, 0.0, 0.5]), number).token == token


def test_a_draw_depends_on_seed_and_place_alone_and_follows_the_shares() -> None:
    settings = Settings(seed=3)
    forwards = [chosen(LOGITS, settings, place) for place in range(20)]
    backwards = [chosen(LOGITS, settings, place) for place in reversed(range(20))][::-1]
    assert forwards == backwards
    assert forwards != [chosen(LOGITS, Settings(seed=4), place) for place in range(20)]
    # it tells its number and the sums that it fell between
    shares = np.array([0.1, 0.4, 0.3, 0.2])
    for place in range(50):
        drawn = draw(shares, 7, place)
        assert drawn.low <= drawn.number < drawn.high
        assert drawn.low == pytest.approx(shares[: drawn.token].sum())
        assert drawn.high == pytest.approx(shares[: drawn.token + 1].sum())
    # many follow the shares
    shares = np.array([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    counts = np.bincount([draw(shares, 0, place).token for place in range(4000)], minlength=6)
    np.testing.assert_allclose(counts / 4000, shares, atol=0.03)
    assert counts[[0, 2, 5]].tolist() == [0, 0, 0]


def test_a_setting_that_cannot_be_is_named() -> None:
    wrong = {"temperature": (-1, np.nan), "top_k": (-1, 1.5), "top_p": (0, 1.1), "seed": (-1,), "max_new_tokens": (0,)}
    for name, values in wrong.items():
        for value in values:
            refuses(name, lambda name=name, value=value: Settings(**{name: value}), UsageError)


# Rules force and forbid tokens before one is chosen
RISING = np.arange(10.0) - 4
INFINITE = -np.inf


def under(rules: Rules, *ids: int, prompt: int = 1, limit: int = 20) -> tuple[dict[int, float], tuple[str, ...]]:
    """The logits that the rules change, and the rules that did."""
    before = RISING.copy()
    scores, acted = apply(rules, Moment(ids, prompt, limit), RISING)
    np.testing.assert_array_equal(RISING, before)
    return {token: float(scores[token]) for token in range(10) if scores[token] != RISING[token]}, acted


def test_the_first_and_last_tokens_are_forced() -> None:
    rules = Rules(forced_bos_token_id=3, forced_eos_token_id=(7,))
    changed, acted = under(rules, 0)
    assert acted == ("forced_bos_token_id",)
    assert {token for token, score in changed.items() if score == 0} == {3}
    assert under(rules, 0, 3) == ({}, ())
    changed, acted = under(rules, *range(9), limit=10)
    assert acted == ("forced_eos_token_id",)
    assert {token for token, score in changed.items() if score == 0} == {7}
    # without rules nothing is changed
    scores, acted = apply(Rules(), Moment((1, 2), 1, 20), RISING)
    assert scores is RISING
    assert acted == ()


def test_words_are_forbidden_when_all_but_their_last_token_is_there() -> None:
    rules = Rules(stop_ids=(9,), bad_words_ids=((4,), (1, 2, 3), (9,), (2, 9)))
    assert under(rules, 0) == ({4: INFINITE}, ("bad_words_ids",))
    assert under(rules, 0, 1, 2)[0] == {4: INFINITE, 3: INFINITE, 9: INFINITE}
    assert under(rules, 1, 2)[0] == {4: INFINITE, 3: INFINITE, 9: INFINITE}


def test_tokens_are_suppressed_always_or_at_the_beginning_or_made_less_likely_and_some_are_left() -> None:
    rules = Rules(suppress_tokens=(5,), begin_suppress_tokens=(6,))
    assert under(rules, 0)[0] == {5: INFINITE, 6: INFINITE}
    assert under(rules, 0, 1) == ({5: INFINITE}, ("suppress_tokens",))
    forced = Rules(forced_bos_token_id=3, begin_suppress_tokens=(6,))
    assert under(forced, 0, 3)[0] == {6: INFINITE}
    assert under(Rules(repetition_penalty=2.0), 1, 8, 8)[0] == {1: -6.0, 8: 2.0}
    with pytest.raises(InputError, match="suppress_tokens of the model's folder forbid all"):
        under(Rules(suppress_tokens=tuple(range(10))), 0)
    assert set(RULES) <= set(Rules.__dataclass_fields__)


def test_a_text_does_not_end_too_soon() -> None:
    assert under(Rules(stop_ids=(2, 9), min_length=3), 0, 1)[0] == {2: INFINITE, 9: INFINITE}
    assert under(Rules(stop_ids=(9,), min_length=3), 0, 1, 2) == ({}, ())
    assert under(Rules(stop_ids=(9,), min_new_tokens=2), 0, 1, 2, prompt=2)[1] == ("min_new_tokens",)
    assert under(Rules(stop_ids=(9,), min_new_tokens=2), 0, 1, 2, 3, prompt=2) == ({}, ())


def test_no_run_of_tokens_comes_twice() -> None:
    assert under(Rules(no_repeat_ngram_size=2), 1, 2, 1, 3, 1)[0] == {2: INFINITE, 3: INFINITE}
    assert under(Rules(no_repeat_ngram_size=3), 1, 2, 5, 1, 2)[0] == {5: INFINITE}
    assert under(Rules(no_repeat_ngram_size=1), 1, 2)[0] == {1: INFINITE, 2: INFINITE}
    assert under(Rules(no_repeat_ngram_size=5), 1, 2) == ({}, ())


# Settings of generation in a model's folder are read, and those that are not followed are named
def defaults(family: str, place: Path, generation: dict[str, Any] | str | None, **config: Any) -> Defaults:
    """Of a family's checkpoint with other files; `config` values of None are left out of `config.json`."""
    raw = json.loads((REFERENCES / family / "config.json").read_text()) | config
    (place / "config.json").write_text(json.dumps({key: value for key, value in raw.items() if value is not None}))
    if generation is not None:
        text = generation if isinstance(generation, str) else json.dumps(generation)
        (place / "generation_config.json").write_text(text)
    return defaults_of(dataclasses.replace(Model.load(REFERENCES / family, device="cpu"), folder=place))


def test_a_folder_says_its_rules_in_either_file_and_families_have_their_own(tmp_path: Path) -> None:
    # config.json, where there is no other file
    rules = defaults("bart", tmp_path, None, min_length=3, no_repeat_ngram_size=3).rules
    assert rules == Rules((2,), 2, None, (2,), min_length=3, no_repeat_ngram_size=3)
    # without any
    nothing = dict.fromkeys(("eos_token_id", "forced_eos_token_id", "bad_words_ids"))
    assert defaults("bart", tmp_path, None, **nothing).rules.forced_eos_token_id == (2,)
    assert defaults("t5", tmp_path, None, **nothing).rules == Rules((1,), 0)
    marian = defaults("marian", tmp_path, None, **nothing).rules
    assert marian.bad_words_ids == ((0,),)
    assert marian.forced_eos_token_id == (0,)
    assert defaults("marian", tmp_path, None).rules.bad_words_ids == ((0,),)
    # generation_config.json stands alone but for IDs of tokens
    read = defaults("bart", tmp_path, {"forced_bos_token_id": 0, "forced_eos_token_id": None}, min_length=3)
    assert read.rules == Rules((2,), 2, 0)
    assert defaults("bart", tmp_path, {"eos_token_id": [2, 7]}).rules == Rules((2, 7), 2)
    assert defaults("marian", tmp_path, {"eos_token_id": 0}).rules.bad_words_ids == ()
    assert defaults("marian", tmp_path, {"bad_words_ids": [[4], [5, 6]]}).rules.bad_words_ids == ((4,), (5, 6))
    # a built-in model stops at the end of its vocabulary
    end = Model.load("decoder", device="cpu").vocabulary.end_id
    wanted = Defaults(Rules(() if end is None else (end,)), Settings(greedy=True))
    assert defaults_of(Model.load("decoder", device="cpu")) == wanted


def test_drawing_is_read_with_its_numbers_and_what_is_not_done_is_said(tmp_path: Path) -> None:
    drawn = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.9}
    assert defaults("llama", tmp_path, drawn).settings == Settings(temperature=0.6, top_k=20, top_p=0.9)
    assert defaults("llama", tmp_path, drawn | {"do_sample": False}).settings == Settings(greedy=True)
    read = defaults("marian", tmp_path, {"num_beams": 4, "typical_p": 1.0, "guidance_scale": None, "min_p": 0.1})
    assert read.note.startswith("generation_config.json asks for num_beams 4, min_p 0.1, which is not done")
    assert defaults("marian", tmp_path, {"num_beams": 1}).note == ""


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({"eos_token_id": "x"}, "eos_token_id 'x' is not a token ID"),
        ({"bad_words_ids": [3]}, "bad_words_ids [3] is not a list of lists"),
        ({"repetition_penalty": 0}, "repetition_penalty 0 is not a number above 0"),
        ({"min_length": -1}, "min_length -1 is not a whole number"),
        ({"forced_bos_token_id": 9999}, "forced_bos_token_id 9999 is outside the vocabulary of 360"),
        ({"do_sample": True, "top_p": 3}, "top_p 3 is not above 0 and at most 1"),
        ("{", "not JSON"),
    ],
)
def test_a_value_that_cannot_be_is_one_line(generation, message: str, tmp_path: Path) -> None:
    said = refuses("", lambda: defaults("bart", tmp_path, generation))
    assert "generation_config.json: " in said
    assert message in said
