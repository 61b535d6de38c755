"""Rotary settings that the published code refuses, or computes as nobody means, are refused here as well."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.errors import UsageError
from tui_transformer.model.families import family_of
from tui_transformer.model.families.rope import read_rope

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 100.0}
SIZES = {"vocab_size": 11, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 20, "num_hidden_layers": 1}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (LLAMA3 | {"original_max_position_embeddings": 0}, "original_max_position_embeddings 0"),
        (LLAMA3 | {"original_max_position_embeddings": False}, "original_max_position_embeddings False"),
        (LLAMA3 | {"original_max_position_embeddings": None}, "original_max_position_embeddings is null"),
        (LLAMA3 | {"partial_rotary_factor": None}, "partial_rotary_factor is null"),
        (YARN | {"rope_theta": None}, "rope_theta is null"),
        (YARN | {"original_max_position_embeddings": []}, "original_max_position_embeddings"),
        (YARN | {"attention_factor": 1e308}, "attention_factor"),
        (YARN | {"beta_fast": 1e308}, "beta_fast"),
        (YARN | {"beta_slow": 1e-308}, "beta_slow"),
        ({"rope_type": "dynamic", "factor": 1e308}, "factor"),
    ],
)
def test_rotary_settings_that_cannot_be_are_named(given, named):
    with pytest.raises(UsageError, match=named):
        read_rope({"rope_parameters": given, "max_position_embeddings": 64})


@pytest.mark.parametrize("value", [False, 0, [], "x", [1.0], 2])
def test_rotary_settings_that_are_no_table_are_refused(value):
    with pytest.raises(UsageError, match="rope_parameters"):
        read_rope({"rope_parameters": value})


@pytest.mark.parametrize("key", ["original_max_position_embeddings", "rope_theta"])
def test_null_beside_the_table_is_refused(key):
    rope = {name: value for name, value in LLAMA3.items() if name != "original_max_position_embeddings"}
    with pytest.raises(UsageError, match=key):
        read_rope({"rope_parameters": rope, "max_position_embeddings": 64, key: None})


def test_yarn_that_is_not_truncated_by_null_has_the_bounds_as_they_are():
    null, no, yes = (
        read_rope({"rope_parameters": YARN | {"truncate": value}}).rotary(16).frequencies
        for value in (None, False, True)
    )
    assert null == no != yes
    np.testing.assert_allclose(null[:3], [1.0, 0.30260103940963745, 0.07905694097280502], rtol=1e-6)


@pytest.mark.parametrize("changes", [{"head_dim": 8}, {"head_dim": None}, {"rotary_pct": None}])
def test_gpt_neox_has_heads_as_wide_as_its_states_give(changes):
    config = SIZES | {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}
    assert family_of("gpt_neox").read(config | {"head_dim": 16}).head_width == 16
    with pytest.raises(UsageError, match=next(iter(changes))):
        family_of("gpt_neox").read(config | changes)


def test_layers_of_a_kind_may_have_settings_of_their_own():
    kinds = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_type": "linear", "factor": 8.0}}
    found = [read_rope({"rope_parameters": kinds}, layers=kind) for kind in kinds]
    assert [(rope.rope_theta, rope.factor) for rope in found] == [(1e6, 1.0), (10000.0, 8.0)]
    with pytest.raises(UsageError, match="not one table"):
        read_rope({"rope_parameters": kinds})
