"""From logits to a token: temperature, top-k, top-p and draws."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.errors import UsageError
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

LOGITS = np.array([1.0, 3.0, 2.0, 3.0, -1.0, 0.5])


def test_temperature_divides_the_logits() -> None:
    expected = np.exp(LOGITS / 0.7) / np.exp(LOGITS / 0.7).sum()
    np.testing.assert_allclose(softmax(tempered(LOGITS, 0.7)), expected, rtol=1e-12)
    np.testing.assert_allclose(softmax(tempered(LOGITS, 1.0)), softmax(LOGITS), rtol=1e-12)


def test_temperature_0_takes_the_first_of_the_most_likely() -> None:
    assert probabilities(LOGITS, Settings(temperature=0)).tolist() == [0, 1, 0, 0, 0, 0]
    assert chosen(LOGITS, Settings(temperature=0), 0) == 1
    assert chosen(LOGITS, Settings(greedy=True, temperature=5), 0) == 1


def test_a_tiny_temperature_gives_numbers() -> None:
    shares = probabilities(np.float32([1e4, 0, -np.inf, 1e4]), Settings(temperature=1e-300))
    assert shares.tolist() == [0.5, 0, 0, 0.5]


def test_temperature_takes_any_number_of_rows() -> None:
    rows = np.stack([LOGITS, -LOGITS])
    np.testing.assert_allclose(softmax(tempered(rows, 2.0))[1], softmax(tempered(-LOGITS, 2.0)))
    assert softmax(tempered(rows, 0))[1].tolist() == [0, 0, 0, 0, 1, 0]


def test_top_k_keeps_exactly_so_many_and_lower_ids_first() -> None:
    assert np.isfinite(top_k(LOGITS, 1)).nonzero()[0].tolist() == [1]
    assert np.isfinite(top_k(LOGITS, 3)).nonzero()[0].tolist() == [1, 2, 3]
    assert top_k(LOGITS, 0) is LOGITS
    assert np.isfinite(top_k(LOGITS, 99)).all()
    assert leading(LOGITS, 4).tolist() == [1, 3, 2, 0]


def test_top_p_keeps_the_fewest_that_make_up_the_share() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    assert [int(np.isfinite(top_p(logits, share)).sum()) for share in (0.4, 0.6, 0.8 + 1e-9, 0.96, 1.0)] == [
        1,
        2,
        3,
        4,
        4,
    ]
    shares = probabilities(logits, Settings(top_p=0.7))
    np.testing.assert_allclose(shares, [0.625, 0.375, 0, 0], rtol=1e-12)


def test_tokens_that_make_up_exactly_the_share_are_enough() -> None:
    kept = [np.isfinite(top_p(np.zeros(4), share)).nonzero()[0].tolist() for share in (0.25, 0.5, 0.75)]
    assert kept == [[0], [0, 1], [0, 1, 2]]


def test_a_large_vocabulary_is_cut_as_a_small_one() -> None:
    logits = np.random.default_rng(0).normal(0, 3, 5000).round(1)  # many are equal
    shares = softmax(logits)
    order = np.argsort(-shares, kind="stable")
    for share in (0.01, 0.3, 0.9, 0.999):
        count = int(np.searchsorted(np.cumsum(shares[order]), share)) + 1
        assert np.isfinite(top_p(logits, share)).nonzero()[0].tolist() == sorted(order[:count])


def test_draws_follow_the_shares_and_never_take_what_has_none() -> None:
    shares = np.array([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    counts = np.bincount([draw(shares, 0, place).token for place in range(4000)], minlength=6)
    np.testing.assert_allclose(counts / 4000, shares, atol=0.03)
    assert counts[[0, 2, 5]].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("number", "token"), [(0.0, 1), (0.25, 2), (0.5, 4), (np.nextafter(0.5, 0), 2)])
def test_a_draw_at_the_edge_of_a_share_is_of_the_next_one_that_is_not_empty(number: float, token: int) -> None:
    assert fallen(np.array([0.0, 0.25, 0.25, 0.0, 0.5]), number).token == token


def test_a_draw_tells_the_number_and_the_cumulative_sums_that_it_fell_between() -> None:
    shares = np.array([0.1, 0.4, 0.3, 0.2])
    for place in range(50):
        drawn = draw(shares, 7, place)
        assert drawn.low <= drawn.number < drawn.high
        assert drawn.low == pytest.approx(shares[: drawn.token].sum())
        assert drawn.high == pytest.approx(shares[: drawn.token + 1].sum())


def test_a_draw_depends_on_seed_and_place_alone() -> None:
    settings = Settings(seed=3)
    forwards = [chosen(LOGITS, settings, place) for place in range(20)]
    backwards = [chosen(LOGITS, settings, place) for place in reversed(range(20))][::-1]
    assert forwards == backwards
    assert forwards != [chosen(LOGITS, Settings(seed=4), place) for place in range(20)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_p": 0},
        {"top_p": 1.1},
        {"seed": -1},
        {"max_new_tokens": 0},
    ],
)
def test_a_setting_that_cannot_be_is_named(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=name):
        Settings(**wrong)  # type: ignore[arg-type]
