"""Entropy of attention: known distributions, masks, padding, large matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.analysis.head_measures import head_entropy, relative_entropy
from tui_transformer.analysis.measures import row_entropy
from tui_transformer.model import Model

WEIGHTS = "{}.0.self_attention.weights"


@pytest.mark.parametrize("keys", [1, 2, 7, 1024])
def test_uniform_attention_has_the_logarithm_of_the_keys(keys: int) -> None:
    assert row_entropy(np.full((3, keys), 1 / keys)) == pytest.approx([math.log2(keys)] * 3)


def test_attention_to_one_key_has_none() -> None:
    entropy = row_entropy(np.eye(5, dtype=np.float32))
    assert entropy.tolist() == [0.0] * 5
    assert not np.signbit(entropy).any()


def test_a_row_without_visible_keys_has_none() -> None:
    assert row_entropy(np.zeros((1, 4))).tolist() == [0.0]


def test_relative_entropy_is_a_share_of_what_the_visible_keys_allow() -> None:
    shares = relative_entropy(np.array([0.0, 1.0, 1.0]), np.array([1, 2, 4]))
    assert math.isnan(shares[0])
    assert shares[1:].tolist() == [1.0, 0.5]


def model(architecture: str, **sizes: object) -> Model:
    return Model.load(architecture, device="cpu", dtype="float64", vocab_size=16, **sizes)


def test_every_head_is_the_mean_of_its_rows() -> None:
    trace = model("encoder").trace(ids=[1, 2, 3, 4, 5])
    name = WEIGHTS.format("encoder")
    entropy = head_entropy(trace, name)
    weights = trace[name]
    assert entropy.bits == pytest.approx((-(weights * np.log2(weights)).sum(axis=-1)).mean(axis=-1))
    assert entropy.relative == pytest.approx(np.array(entropy.bits) / math.log2(5))
    assert (entropy.keys, entropy.most_keys, entropy.queries, entropy.real, entropy.sampled) == (3, 5, 5, 5, False)


def test_causal_queries_that_see_fewer_than_three_keys_are_left_out() -> None:
    trace = model("decoder").trace(ids=[1, 2, 3, 4, 5])
    name = WEIGHTS.format("decoder")
    entropy = head_entropy(trace, name)
    rows = row_entropy(trace[name])
    assert entropy.bits == pytest.approx(rows[:, 2:].mean(axis=-1))
    assert entropy.relative == pytest.approx((rows[:, 2:] / np.log2([3, 4, 5])).mean(axis=-1))
    assert (entropy.queries, entropy.real) == (3, 5)


def test_a_short_sentence_counts_the_queries_that_see_most() -> None:
    entropy = head_entropy(model("decoder").trace(ids=[1, 2]), WEIGHTS.format("decoder"))
    assert (entropy.keys, entropy.queries) == (2, 1)
    one = head_entropy(model("decoder").trace(ids=[1]), WEIGHTS.format("decoder"))
    assert set(one.bits) == {0.0}
    assert all(map(math.isnan, one.relative))


def test_padding_changes_nothing() -> None:
    padded = model("encoder", pad_id=0)
    name = WEIGHTS.format("encoder")
    short, long = (head_entropy(padded.trace(ids=ids), name) for ids in ([1, 2, 3, 4], [1, 2, 3, 4, 0, 0]))
    assert long.bits == pytest.approx(short.bits)
    assert long.relative == pytest.approx(short.relative)
    assert (long.most_keys, long.real) == (4, 4)


def test_the_item_of_a_batch_is_read() -> None:
    name, both = WEIGHTS.format("encoder"), [[1, 2, 3, 4], [5, 6, 7, 8]]
    batch = model("encoder").trace(ids=both)
    for item, ids in enumerate(both):
        alone = head_entropy(model("encoder").trace(ids=ids), name)
        assert head_entropy(batch, name, item).bits == pytest.approx(alone.bits)


def test_many_queries_are_sampled() -> None:
    trace = model("encoder").trace(ids=[1, 2, 3, 4] * 4)
    name = WEIGHTS.format("encoder")
    entropy = head_entropy(trace, name, cells=8 * 16 * 4)
    assert entropy.sampled
    assert (entropy.queries, entropy.real) == (4, 16)
    assert entropy.bits == pytest.approx(row_entropy(trace[name][:, [0, 4, 8, 12]]).mean(axis=-1))
