"""BERT and the encoders like it, each by what it does otherwise."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from encoders import CONFIGS, EPSILON, ROWS, SEGMENTS, WIDTH, Tensors, named, random_tensors, states
from reference import LEFT_OUT, REFERENCES, check_same
from saved import checkpoint

from tui_transformer.engine.ops import Disentangle
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 7, 9, 33, 12, 5, 8, 4]
DEBERTA, MODERN = "deberta-v2", "modernbert"
RANDOM_IDS = [4, 9, 2, 30, 49, 9]


def random_model(folder: Path, family: str, tensors: Tensors | None = None, **settings: object) -> Model:
    """A model of a family with random tensors."""
    given = named(random_tensors() if tensors is None else tensors, family)
    return Model.load(checkpoint(folder, CONFIGS[family] | settings, given), device="cpu", dtype="float64")


# BERT


def test_the_embedding_is_the_norm_of_three_rows(tmp_path):
    model = random_model(tmp_path, "bert")
    trace, tensors = model.trace(ids=[4, 9]), random_tensors()
    assert trace["embedding.segments.weight"].shape == (SEGMENTS, WIDTH)
    assert np.array_equal(trace["embedding.segments"], tensors["embeddings.token_type_embeddings.weight"][[0, 0]])
    assert np.array_equal(trace["embedding.positions"], tensors["embeddings.position_embeddings.weight"][:2])


def test_as_many_tokens_as_positions_are_read(tmp_path):
    model = random_model(tmp_path, "bert")
    assert model.trace(ids=[5] * ROWS)["output.logits"].shape[0] == ROWS
    with pytest.raises(InputError, match=f"{ROWS + 1} tokens are more than the {ROWS}"):
        model.trace(ids=[5] * (ROWS + 1))


def test_a_model_without_padding_masks_nothing(tmp_path):
    model = random_model(tmp_path, "bert", pad_token_id=None)
    assert np.all(np.isfinite(model.trace(ids=[5, 0, 0])["encoder.0.self_attention.masked"]))


# RoBERTa


@pytest.mark.parametrize("pad", [0, 1, 3])
def test_tokens_count_from_behind_the_pad_id_and_padding_stays_at_it(tmp_path, pad):
    trace = random_model(tmp_path, "roberta", pad_token_id=pad).trace(ids=[[9, 8, 7, 6], [9, pad, 8, pad]])
    assert trace["input.places"].tolist() == [
        [pad + 1, pad + 2, pad + 3, pad + 4],
        [pad + 1, pad, pad + 2, pad],
    ]
    assert np.array_equal(trace["embedding.positions"][1, 1], trace["embedding.positions.weight"][pad])


def test_only_padding_at_the_end_is_hidden(tmp_path):
    trace = random_model(tmp_path, "roberta").trace(ids=[9, 1, 8, 1])
    assert np.isneginf(trace["encoder.0.self_attention.masked"]).any(axis=(0, 1)).tolist() == [False] * 3 + [True]


def test_rows_up_to_the_pad_id_are_not_for_tokens(tmp_path):
    model = random_model(tmp_path, "roberta")
    assert model.trace(ids=[9] * (ROWS - 2))["input.places"][-1] == ROWS - 1
    with pytest.raises(InputError, match=f"{ROWS - 1} tokens are more than the {ROWS - 2}"):
        model.trace(ids=[9] * (ROWS - 1))


@pytest.mark.parametrize("pad", [None, ROWS - 1])
def test_a_pad_id_that_leaves_no_position_is_refused(tmp_path, pad):
    with pytest.raises(InputError, match=f"pad_token_id {pad} leaves no position"):
        random_model(tmp_path, "roberta", pad_token_id=pad)


# DistilBERT

TABLE = "embeddings.position_embeddings.weight"


def sines() -> np.ndarray:
    """Sine in even columns, cosine in odd ones."""
    angles = [
        [place / 10000 ** (column // 2 * 2 / WIDTH) for column in range(WIDTH)] for place in range(len(RANDOM_IDS))
    ]
    rows = np.array(angles)
    rows[:, 0::2], rows[:, 1::2] = np.sin(rows[:, 0::2]), np.cos(rows[:, 1::2])
    return rows


def test_positions_are_sines_where_the_file_has_no_table(tmp_path):
    tensors = random_tensors()
    without = {name: tensor for name, tensor in tensors.items() if name != TABLE}
    trace = random_model(tmp_path, "distilbert", without, sinusoidal_pos_embds=True).trace(ids=RANDOM_IDS)
    wanted = states(tensors, np.array(RANDOM_IDS), sines(), epsilon=EPSILON["distilbert"], segments=False)
    np.testing.assert_allclose(trace["embedding.positions"], sines(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace["encoder.2.output"], wanted, rtol=0, atol=1e-10)


def test_a_table_in_the_file_counts_whatever_the_configuration_says(tmp_path):
    tensors = random_tensors()
    trace = random_model(tmp_path, "distilbert", tensors, sinusoidal_pos_embds=True).trace(ids=RANDOM_IDS)
    assert np.array_equal(trace["embedding.positions"], tensors[TABLE][: len(RANDOM_IDS)])


def test_a_missing_table_is_named_where_positions_are_learned(tmp_path):
    tensors = random_tensors()
    del tensors[TABLE]
    with pytest.raises(InputError, match=r"tensor distilbert.embeddings.position_embeddings.weight is missing"):
        random_model(tmp_path, "distilbert", tensors)


def test_distilbert_has_no_segments(tmp_path):
    trace = random_model(tmp_path, "distilbert").trace(ids=RANDOM_IDS)
    assert "embedding.segments" not in trace
    assert "input.segments" not in trace.program.givens


# ELECTRA, ALBERT and MPNet


@pytest.mark.parametrize("family", ["electra", "albert"])
def test_a_narrow_embedding_is_projected_after_its_norm(family, changed):
    trace = changed(family).trace(ids=IDS)
    weight, bias = trace["embedding.projected.weight"], trace["embedding.projected.bias"]
    assert weight.shape == (24, 32)
    np.testing.assert_allclose(trace["embedding.output"], trace["embedding.norm"] @ weight + bias, atol=1e-12)
    assert trace["output.transform.norm"].shape == (len(IDS), 24)


@pytest.mark.parametrize("family", ["electra", "albert"])
def test_there_are_two_kinds_of_segments_where_nothing_is_said(family, changed):
    model = changed(family, type_vocab_size=LEFT_OUT)
    assert model.config.segments == changed(family).config.segments == 2
    assert model.trace(ids=IDS[:6])["embedding.segments"].shape == (6, 24)


def test_layers_of_an_albert_have_one_set_of_weights(changed):
    trace = changed("albert").trace(ids=IDS)
    assert "encoder.1.self_attention.query" in trace.program.by_name
    assert not [name for name in trace.program.weights if name.startswith("encoder.1.")]
    (first, second) = (trace.program.by_name[f"encoder.{i}.feed_forward.output"].inputs[1] for i in range(2))
    assert first == second == "encoder.0.feed_forward.output.weight"


def test_an_albert_is_saved_and_loaded_again(tmp_path, changed):
    model = changed("albert")
    model.save(tmp_path / "saved")
    again = Model.load(tmp_path / "saved", device="cpu", dtype="float64")
    check_same(again, model, IDS)


def test_all_layers_of_an_mpnet_read_one_table_of_biases(changed):
    program = changed("mpnet").program(4)
    readers = [step.name for step in program.readers("encoder.biased.weight")]
    assert readers == [f"encoder.{i}.self_attention.biased" for i in range(2)]


def test_distances_of_an_mpnet_count_every_token_but_places_only_those_that_are_no_padding(changed):
    trace = changed("mpnet").trace(ids=[7, 1, 9, 8])
    assert trace["input.places"].tolist() == [2, 1, 3, 4]
    added = trace["encoder.0.self_attention.biased"] - trace["encoder.0.self_attention.scaled"]
    np.testing.assert_allclose(added[:, 0, 2], added[:, 1, 3], atol=1e-12)
    np.testing.assert_allclose(added[:, 0, 2], trace["encoder.biased.weight"][16 + 2], atol=1e-12)


@pytest.mark.parametrize("kind", ["camembert", "data2vec-text"])
def test_other_names_of_an_xlm_r_are_read(changed, kind):
    with np.load(REFERENCES / "xlm-roberta" / "expected.npz") as file:
        ids, wanted = file["input_ids"].tolist(), file["logits"]
    trace = changed("xlm-roberta", model_type=kind).trace(ids=ids)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=0, atol=1e-9)


# DeBERTa

A = "encoder.1.self_attention"


def test_scores_are_the_sum_of_three_comparisons(changed):
    trace = changed(DEBERTA).trace(ids=IDS)
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
    trace = changed(DEBERTA).trace(ids=IDS)
    wanted = trace["encoder.distances_norm"] @ trace[f"{A}.key.weight"] + trace[f"{A}.key.bias"]
    np.testing.assert_allclose(trace[f"{A}.distance_key"].swapaxes(0, 1).reshape(32, 32), wanted, atol=1e-12)


def test_only_what_is_asked_for_is_compared(changed):
    names = changed(DEBERTA, pos_att_type="c2p").trace(ids=IDS).names
    assert f"{A}.query_distance_scores" in names
    assert f"{A}.key_distance_scores" not in names
    assert "encoder.distances" not in changed(DEBERTA, relative_attention=False).trace(ids=IDS).names


def test_far_distances_share_a_row():
    rows = Disentangle(("query",), 1.0, span=4, buckets=4, farthest=10).row(np.arange(-12, 13)).tolist()
    assert rows[12:] == [4, 5, 6, *[7] * 10]
    assert rows[11::-1] == [3, 2, *[1] * 7, *[0] * 3]


# ModernBERT

SLIDING, FULL = "sliding_attention", "full_attention"


def farthest_keys(model: Model) -> list[int]:
    """How far the first query sees in every layer."""
    trace = model.trace(ids=IDS)
    return [int(np.flatnonzero(trace[f"encoder.{i}.self_attention.weights"][0, 0])[-1]) for i in range(2)]


def test_a_local_layer_sees_half_of_its_window_on_either_side(changed):
    assert farthest_keys(changed(MODERN, local_attention=6)) == [7, 3]
    assert farthest_keys(changed(MODERN, local_attention=5)) == [7, 2]


def test_old_files_say_how_often_a_layer_is_global_and_name_both_thetas(changed):
    old = {"layer_types": LEFT_OUT, "rope_parameters": LEFT_OUT}
    model = changed(MODERN, **old, global_attn_every_n_layers=1, global_rope_theta=500.0)
    assert farthest_keys(model) == [7, 7]
    assert (model.config.full_rope.rope_theta, model.config.local_rope.rope_theta) == (500.0, 10000.0)
    assert changed(MODERN, **old).config.full_rope.rope_theta == 160000.0


def test_the_first_layer_has_no_norm_before_its_attention(changed):
    names = changed(MODERN).trace(ids=IDS).names
    assert "encoder.0.self_attention.norm" not in names
    assert "encoder.1.self_attention.norm" in names


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("electra", {"type_vocab_size": []}, r"type_vocab_size \[\] is not a whole number"),
        ("electra", {"embedding_size": 0}, "embedding_size 0 is not a whole number from 1"),
        ("electra", {"is_decoder": True}, "is_decoder True is not supported"),
        ("albert", {"inner_group_num": 0}, "inner_group_num 0 is not a whole number from 1"),
        ("albert", {"num_hidden_groups": 0}, "num_hidden_groups 0 is not a whole number from 1"),
        ("mpnet", {"relative_attention_num_buckets": 40}, "relative_attention_num_buckets 40 is not supported: only"),
        ("mpnet", {"max_position_embeddings": 2}, "max_position_embeddings 2 leaves no position"),
        (DEBERTA, {"conv_kernel_size": 3}, "conv_kernel_size 3 is not supported: only 0 is"),
        (DEBERTA, {"embedding_size": 16}, "embedding_size 16 is not supported: only 32"),
        (DEBERTA, {"attention_head_size": 4}, "attention_head_size 4 is not supported: only 8"),
        (DEBERTA, {"pos_att_type": ["p2p"]}, "pos_att_type .*p2p.* is not known: use c2p, p2c"),
        (DEBERTA, {"pos_att_type": 3}, "pos_att_type 3 is not a list"),
        (DEBERTA, {"norm_rel_ebd": "rms"}, "norm_rel_ebd 'rms' is not known"),
        (DEBERTA, {"position_buckets": 1}, "position_buckets 1 cannot be halved"),
        (
            "deberta-v2",
            {"position_buckets": 40},
            "position_buckets 40 leave no far distance: max_relative_positions is 16",
        ),
        (DEBERTA, {"max_relative_positions": 8}, "rel_embeddings.weight is 32 × 32, but config.json says 16 × 32"),
        (
            "modernbert",
            {"rope_parameters": {"rope_theta": 5.0}},
            "rope_parameters .* has no table for each kind of layer",
        ),
        (MODERN, {"rope_parameters": {FULL: {"rope_type": "axial"}}}, "rope_type 'axial' is not known"),
        (
            "modernbert",
            {"rope_parameters": {FULL: {"partial_rotary_factor": 0.5}}},
            "partial_rotary_factor other than 1",
        ),
        (MODERN, {"layer_types": [SLIDING]}, "layer_types names 1 layers of 2"),
        (MODERN, {"layer_types": [SLIDING, "chunked_attention"]}, "layer_types .* is not a list of"),
        (MODERN, {"classifier_activation": "tanhshrink"}, "classifier_activation 'tanhshrink' is not known"),
        (MODERN, {"local_attention": 0}, "local_attention 0 is not a whole number from 1"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(changed, family, settings, message):
    with pytest.raises(InputError, match=message):
        changed(family, **settings)
