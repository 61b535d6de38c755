"""Fused, ordered, stacked and shifted tensors give the weights that they hold, in parts as a whole."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tui_transformer.model.weight_table import Part, WeightTable, cut, halves_of_pairs, of_every_group

CONFIG = SimpleNamespace(num_attention_heads=2, kv_heads=2, width=4, tied=False)
NAMES = frozenset({"model.layers.3.attn.weight", "model.layers.3.attn.bias"})
QUERY = "decoder.3.self_attention.query.weight"


def weight(part: Part, tensor: np.ndarray, name: str = QUERY, **options) -> np.ndarray:
    step = "decoder.{}.self_attention.query" if name == QUERY else "decoder.{}.feed_forward.experts.{}.hidden"
    table = WeightTable({step: part}, prefix="model.", **options)
    place = table.stored(CONFIG, name, NAMES)
    return place.numbers(place.make(place.take(tensor)))


def test_parts_side_by_side_are_cut_by_their_sizes_of_every_head_and_pairs_become_halves():
    tensor = np.arange(24.0).reshape(8, 3)
    parts = [weight(Part("model.layers.{}.attn", cut(i, lambda _: (4, 2, 2))), tensor) for i in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), tensor.T)
    with pytest.raises(ValueError, match="sum"):
        weight(Part("model.layers.{}.attn", cut(0, lambda _: (4, 2))), tensor)
    # of every head
    tensor = np.arange(2 * 3 * 3.0).reshape(6, 3)  # two heads of q, k, v, each one row
    for place, rows in enumerate(([0, 3], [1, 4], [2, 5])):
        part = Part("model.layers.{}.attn", of_every_group(place))
        np.testing.assert_array_equal(weight(part, tensor), tensor[rows].T)
    # pairs
    tensor = np.arange(8.0).reshape(8, 1)
    take = halves_of_pairs(lambda config: config.width)
    assert weight(Part("model.layers.{}.attn", take), tensor)[0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_an_expert_is_a_place_of_a_stacked_tensor():
    tensor = np.arange(24.0).reshape(2, 3, 4)
    part = Part("model.layers.{}.experts.gate", stacked=True, whole=True)
    name = "decoder.0.feed_forward.experts.1.hidden.weight"
    np.testing.assert_array_equal(weight(part, tensor, name), tensor[1].T)
    assert WeightTable({"decoder.{}.feed_forward.experts.{}.hidden": part}).tensor(name, frozenset()) == (
        "model.layers.0.experts.gate"
    )


def test_multipliers_are_worked_out_in_float64():
    table = WeightTable({"decoder.{}.self_attention.norm": Part("model.layers.{}.ln", plus=1.0)})
    place = table.stored(CONFIG, "decoder.0.self_attention.norm.weight", frozenset())
    small = np.float32([1e-8])
    assert place.numbers(small).tolist() == [1.0 + float(small[0])]
    assert place.plus == 1.0


def test_files_without_a_prefix_and_with_old_endings_are_found():
    table = WeightTable({"decoder.{}.self_attention.norm": "model.layers.{}.ln"}, prefix="model.")
    name = "decoder.3.self_attention.norm.weight"
    assert table.tensor(name, frozenset({"layers.3.ln.gamma"})) == "layers.3.ln.gamma"
    assert table.tensor(name, frozenset({"layers.3.other"})) == "layers.3.ln.weight"
    assert table.tensor(name, frozenset({"model.layers.3.other"})) == "model.layers.3.ln.weight"


@pytest.mark.parametrize(
    ("kv_heads", "rows"), [(1, ([0, 1, 2, 3], [4], [5])), (2, ([0, 1, 4, 5], [2, 6], [3, 7]))], ids=("alone", "several")
)
def test_query_heads_of_a_key_head_are_together_and_taken_as_a_view(kv_heads, rows):
    config = SimpleNamespace(num_attention_heads=4, kv_heads=kv_heads, tied=False)
    tensor = np.arange(3.0 * (4 + 2 * kv_heads)).reshape(-1, 3)
    for place, wanted in enumerate(rows):
        table = WeightTable({"decoder.{}.self_attention.query": Part("model.layers.{}.attn", of_every_group(place))})
        stored = table.stored(config, QUERY, NAMES)
        assert np.may_share_memory(stored.take(tensor), tensor)
        np.testing.assert_array_equal(stored.make(stored.take(tensor)), tensor[wanted].T)
