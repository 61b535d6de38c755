"""DeBERTa-v2: scores of contents with distances."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from tui_transformer.engine.ops import Disentangle
from tui_transformer.errors import InputError

IDS = [2, 7, 9, 33, 12, 5, 8, 4]
A = "encoder.1.self_attention"


@pytest.fixture
def changed(changed):
    """The reference checkpoint with other settings."""
    return partial(changed, "deberta-v2")


def test_scores_are_the_sum_of_three_comparisons(changed):
    trace = changed().trace(ids=IDS)
    query, key = trace[f"{A}.query"], trace[f"{A}.key"]
    of_keys, of_queries = trace[f"{A}.distance_key"], trace[f"{A}.distance_query"]
    for row, column in ((0, 0), (5, 2), (1, 7)):
        place = row - column + 16
        parts = (
            query[:, row] * key[:, column] + query[:, row] * of_keys[:, place] + key[:, column] * of_queries[:, place]
        )
        wanted = parts.sum(axis=1) / math.sqrt(3 * query.shape[-1])
        np.testing.assert_allclose(trace[f"{A}.biased"][:, row, column], wanted, atol=1e-12)


def test_distances_are_projected_by_the_matrices_of_the_tokens_where_they_are_shared(changed):
    trace = changed().trace(ids=IDS)
    wanted = trace["encoder.distances_norm"] @ trace[f"{A}.key.weight"] + trace[f"{A}.key.bias"]
    np.testing.assert_allclose(trace[f"{A}.distance_key"].swapaxes(0, 1).reshape(32, 32), wanted, atol=1e-12)


def test_only_what_is_asked_for_is_compared(changed):
    names = changed(pos_att_type="c2p").trace(ids=IDS).names
    assert f"{A}.query_distance_scores" in names
    assert f"{A}.key_distance_scores" not in names
    assert "encoder.distances" not in changed(relative_attention=False).trace(ids=IDS).names


def test_far_distances_share_a_row():
    rows = Disentangle(("query",), 1.0, span=4, buckets=4, farthest=10).row(np.arange(-12, 13)).tolist()
    assert rows[12:] == [4, 5, 6, *[7] * 10]
    assert rows[11::-1] == [3, 2, *[1] * 7, *[0] * 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"conv_kernel_size": 3}, "conv_kernel_size 3 is not supported: only 0 is"),
        ({"embedding_size": 16}, "embedding_size 16 is not supported: only 32"),
        ({"attention_head_size": 4}, "attention_head_size 4 is not supported: only 8"),
        ({"pos_att_type": ["p2p"]}, "pos_att_type .*p2p.* is not known: use c2p, p2c"),
        ({"pos_att_type": 3}, "pos_att_type 3 is not a list"),
        ({"norm_rel_ebd": "rms"}, "norm_rel_ebd 'rms' is not known"),
        ({"position_buckets": 1}, "position_buckets 1 cannot be halved"),
        ({"position_buckets": 40}, "position_buckets 40 leave no far distance: max_relative_positions is 16"),
        ({"max_relative_positions": 8}, "rel_embeddings.weight is 32 × 32, but config.json says 16 × 32"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(changed, settings, message):
    with pytest.raises(InputError, match=message):
        changed(**settings)
