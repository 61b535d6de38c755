"""Rules force and forbid tokens before one is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.errors import InputError
from tui_transformer.generation.rules import RULES, Moment, Rules, apply

LOGITS = np.arange(10.0) - 4
INFINITE = -np.inf


def under(rules: Rules, *ids: int, prompt: int = 1, limit: int = 20) -> tuple[dict[int, float], tuple[str, ...]]:
    """The logits that the rules change, and the rules that did."""
    before = LOGITS.copy()
    scores, acted = apply(rules, Moment(ids, prompt, limit), LOGITS)
    np.testing.assert_array_equal(LOGITS, before)
    return {token: float(scores[token]) for token in range(10) if scores[token] != LOGITS[token]}, acted


def test_without_rules_nothing_is_changed() -> None:
    scores, acted = apply(Rules(), Moment((1, 2), 1, 20), LOGITS)
    assert scores is LOGITS
    assert acted == ()


def test_the_first_and_last_tokens_are_forced() -> None:
    rules = Rules(forced_bos_token_id=3, forced_eos_token_id=(7,))
    changed, acted = under(rules, 0)
    assert acted == ("forced_bos_token_id",)
    assert {token for token, score in changed.items() if score == 0} == {3}
    assert under(rules, 0, 3) == ({}, ())
    changed, acted = under(rules, *range(9), limit=10)
    assert acted == ("forced_eos_token_id",)
    assert {token for token, score in changed.items() if score == 0} == {7}


def test_words_are_forbidden_when_all_but_their_last_token_is_there() -> None:
    rules = Rules(stop_ids=(9,), bad_words_ids=((4,), (1, 2, 3), (9,), (2, 9)))
    assert under(rules, 0) == ({4: INFINITE}, ("bad_words_ids",))
    assert under(rules, 0, 1, 2)[0] == {4: INFINITE, 3: INFINITE, 9: INFINITE}
    assert under(rules, 1, 2)[0] == {4: INFINITE, 3: INFINITE, 9: INFINITE}


def test_tokens_are_suppressed_always_or_at_the_beginning() -> None:
    rules = Rules(suppress_tokens=(5,), begin_suppress_tokens=(6,))
    assert under(rules, 0)[0] == {5: INFINITE, 6: INFINITE}
    assert under(rules, 0, 1) == ({5: INFINITE}, ("suppress_tokens",))
    forced = Rules(forced_bos_token_id=3, begin_suppress_tokens=(6,))
    assert under(forced, 0, 3)[0] == {6: INFINITE}


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


def test_repeated_tokens_are_made_less_likely() -> None:
    assert under(Rules(repetition_penalty=2.0), 1, 8, 8)[0] == {1: -6.0, 8: 2.0}


def test_rules_that_leave_nothing_are_said() -> None:
    with pytest.raises(InputError, match="suppress_tokens of the model's folder forbid all"):
        under(Rules(suppress_tokens=tuple(range(10))), 0)


def test_every_rule_has_the_name_of_its_setting() -> None:
    assert set(RULES) <= set(Rules.__dataclass_fields__)
