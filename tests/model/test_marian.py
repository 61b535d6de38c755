"""Marian: what it computes, what its steps are called, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from bart_in_numpy import logits, shapes
from encoder_decoders import (
    EMBEDDING,
    REFERENCES,
    TOLERANCES,
    checkpoint,
    differences,
    names_of_layers,
    random_tensors,
    reference_trace,
    worst_explanations,
)

from tui_transformer.errors import InputError
from tui_transformer.model import Model

CONFIG = {
    "model_type": "marian",
    "vocab_size": 13,
    "decoder_vocab_size": 13,
    "d_model": 12,
    "encoder_layers": 2,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 10,
    "decoder_layers": 1,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 7,
    "max_position_embeddings": 9,
    "activation_function": "swish",
    "scale_embedding": True,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 13,
    "share_encoder_decoder_embeddings": True,
    "pad_token_id": 12,
    "decoder_start_token_id": 12,
}
IDS, DECODER_IDS = [4, 5, 7, 3, 11, 0], [12, 0, 9, 4]


def made(folder, **changes):
    """A model of other sizes than the reference's, and its tensors."""
    config = CONFIG | changes
    wanted = shapes(config, "model.", learned=False) | {"final_logits_bias": (1, config["vocab_size"])}
    tensors = random_tensors(wanted)
    return Model.load(checkpoint(folder, config, tensors), device="cpu", dtype="float64"), tensors, config


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_every_array_equals_the_reference(dtype):
    far = differences("marian", reference_trace("marian", dtype), final_norm=False)
    assert len(far) == 13
    assert max(far.values()) <= max(TOLERANCES[dtype], 1e-6), far  # the stored sines are float32


def test_steps_have_their_public_names():
    common = [f"{prefix}{step}" for prefix in ("", "decoder.") for step in (*EMBEDDING, "embedding.positions")]
    wanted = {*common, *names_of_layers({}), "output.logits", "output.probabilities"}
    assert set(reference_trace("marian").names) == wanted


def test_explanations_give_the_values_that_are_held():
    worst = worst_explanations(reference_trace("marian"))
    assert max(worst.values()) <= 1e-9, worst


def test_the_first_token_has_the_sines_of_0_and_then_the_cosines():
    assert reference_trace("marian")["embedding.positions"][0].tolist() == [0.0] * 16 + [1.0] * 16


@pytest.mark.parametrize("changes", [{}, {"activation_function": "relu"}, {"scale_embedding": False}])
def test_other_settings_are_computed_as_in_numpy(tmp_path, changes):
    model, tensors, config = made(tmp_path, **changes)
    trace = model.trace(ids=IDS, decoder_ids=DECODER_IDS)
    wanted = logits(tensors, config, "model.", IDS, DECODER_IDS)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=1e-10, atol=1e-10)


def test_positions_that_a_file_stores_are_looked_up(tmp_path):
    _, tensors, config = made(tmp_path / "first")
    stored = {f"model.{stack}.embed_positions.weight": np.eye(9, 12) for stack in ("encoder", "decoder")}
    model = Model.load(checkpoint(tmp_path / "second", config, {**tensors, **stored}), device="cpu", dtype="float64")
    trace = model.trace(ids=IDS, decoder_ids=DECODER_IDS)
    for prefix, ids in (("", IDS), ("decoder.", DECODER_IDS)):
        assert np.array_equal(trace[f"{prefix}embedding.positions"], np.eye(9, 12)[: len(ids)])


def test_the_decoder_begins_with_padding_and_looks_at_it(tmp_path):
    model, _, _ = made(tmp_path)
    trace = model.trace(ids=IDS)
    assert trace["decoder.tokens"].tolist() == [12]
    assert trace["decoder.0.self_attention.weights"].tolist() == [[[1.0]], [[1.0]]]


def test_the_decoder_begins_with_padding_where_nothing_is_said(tmp_path):
    model, _, _ = made(tmp_path, decoder_start_token_id=None)
    assert model.config.start_id == 12


def test_a_saved_model_is_read_again(tmp_path):
    model, _, _ = made(tmp_path / "first")
    model.save(tmp_path / "second")
    again = Model.load(tmp_path / "second", device="cpu", dtype="float64")
    assert again.config == model.config
    first, second = (each.trace(ids=IDS, decoder_ids=DECODER_IDS)["output.logits"] for each in (model, again))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("share_encoder_decoder_embeddings", "no"),
        ("decoder_vocab_size", 14),
        ("tie_word_embeddings", "no"),
        ("static_position_embeddings", False),
        ("normalize_before", True),
        ("normalize_embedding", True),
        ("add_final_layer_norm", True),
        ("is_encoder_decoder", False),
        ("is_decoder", True),
        ("is_causal", False),
        ("activation_function", "mish"),
        ("encoder_attention_heads", 5),
        ("decoder_start_token_id", 13),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(tmp_path, key, value):
    checkpoint(tmp_path, CONFIG | {key: value}, {})
    with pytest.raises(InputError, match=key):
        Model.load(tmp_path, device="cpu")


def test_the_reference_says_what_it_is():
    summary = Model.load(REFERENCES / "marian", device="cpu").config.summary
    assert summary == "marian · d_model 32 · 4 heads · d_ff 96 · 2 + 2 layers"
