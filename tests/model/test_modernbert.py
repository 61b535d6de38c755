"""ModernBERT: local and global layers, each with its own positions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from reference import LEFT_OUT

from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 7, 9, 33, 12, 5, 8, 4]
SLIDING, FULL = "sliding_attention", "full_attention"


@pytest.fixture
def changed(changed):
    """The reference checkpoint with other settings."""
    return partial(changed, "modernbert")


def farthest_keys(model: Model) -> list[int]:
    """How far the first query sees in every layer."""
    trace = model.trace(ids=IDS)
    return [int(np.flatnonzero(trace[f"encoder.{i}.self_attention.weights"][0, 0])[-1]) for i in range(2)]


def test_a_local_layer_sees_half_of_its_window_on_either_side(changed):
    assert farthest_keys(changed(local_attention=6)) == [7, 3]
    assert farthest_keys(changed(local_attention=5)) == [7, 2]


def test_old_files_say_how_often_a_layer_is_global_and_name_both_thetas(changed):
    old = {"layer_types": LEFT_OUT, "rope_parameters": LEFT_OUT}
    model = changed(**old, global_attn_every_n_layers=1, global_rope_theta=500.0)
    assert farthest_keys(model) == [7, 7]
    assert (model.config.full_rope.rope_theta, model.config.local_rope.rope_theta) == (500.0, 10000.0)
    assert changed(**old).config.full_rope.rope_theta == 160000.0


def test_the_first_layer_has_no_norm_before_its_attention(changed):
    names = changed().trace(ids=IDS).names
    assert "encoder.0.self_attention.norm" not in names
    assert "encoder.1.self_attention.norm" in names


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rope_parameters": {"rope_theta": 5.0}}, "rope_parameters .* has no table for each kind of layer"),
        ({"rope_parameters": {FULL: {"rope_type": "axial"}}}, "rope_type 'axial' is not known"),
        ({"rope_parameters": {FULL: {"partial_rotary_factor": 0.5}}}, "partial_rotary_factor other than 1"),
        ({"layer_types": [SLIDING]}, "layer_types names 1 layers of 2"),
        ({"layer_types": [SLIDING, "chunked_attention"]}, "layer_types .* is not a list of"),
        ({"classifier_activation": "tanhshrink"}, "classifier_activation 'tanhshrink' is not known"),
        ({"local_attention": 0}, "local_attention 0 is not a whole number from 1"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(changed, settings, message):
    with pytest.raises(InputError, match=message):
        changed(**settings)
