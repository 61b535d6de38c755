"""GPT-2 in the forms that its checkpoints have."""

from __future__ import annotations

import numpy as np
import pytest
from decoders import GPT2, gelu, gpt2_logits, gpt2_tensors, load, logits

from tui_transformer.errors import InputError
from tui_transformer.model import Model

RAW = {"model_type": "gpt2", **GPT2}


def model_of(folder, tensors=None, **changes) -> Model:
    config = RAW | changes
    return load(folder, config, gpt2_tensors(config) if tensors is None else tensors)


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_names_have_a_prefix_or_none(tmp_path, prefix):
    tensors = gpt2_tensors(GPT2)
    model = model_of(tmp_path, {prefix + name: tensor for name, tensor in tensors.items()})
    np.testing.assert_allclose(logits(model), gpt2_logits(GPT2, tensors), atol=1e-11)


def test_mask_buffers_of_old_files_are_left_alone(tmp_path):
    tensors = gpt2_tensors(GPT2) | {"h.0.attn.bias": np.ones((1, 1, 9, 9)), "h.0.attn.masked_bias": np.ones(1)}
    np.testing.assert_allclose(logits(model_of(tmp_path, tensors)), gpt2_logits(GPT2, tensors), atol=1e-11)


def test_the_head_may_have_a_matrix_of_its_own(tmp_path):
    tensors = gpt2_tensors(GPT2) | {"lm_head.weight": np.random.default_rng(1).normal(size=(11, 12))}
    model = model_of(tmp_path, tensors, tie_word_embeddings=False)
    np.testing.assert_allclose(logits(model), gpt2_logits(GPT2, tensors), atol=1e-11)
    assert "output.logits.weight" in model.program(1).weights


def test_a_tied_head_is_not_read(tmp_path):
    tensors = gpt2_tensors(GPT2)
    extra = tensors | {"lm_head.weight": np.zeros((11, 12))}
    np.testing.assert_allclose(logits(model_of(tmp_path, extra)), gpt2_logits(GPT2, tensors), atol=1e-11)


@pytest.mark.parametrize(
    ("changes", "scale", "expression"),
    [
        ({"scale_attn_weights": False}, lambda layer, width: 1.0, "not divided"),
        ({"scale_attn_by_inverse_layer_idx": True}, lambda layer, width: width**-0.5 / (layer + 1), "÷ √4 ÷ 2"),
        (
            {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
            lambda layer, width: 1.0 / (layer + 1),
            "÷ 2",
        ),
        ({}, lambda layer, width: width**-0.5, "÷ √4"),
    ],
)
def test_scores_are_divided_as_the_file_says(tmp_path, changes, scale, expression):
    model = model_of(tmp_path, **changes)
    np.testing.assert_allclose(logits(model), gpt2_logits(GPT2, gpt2_tensors(GPT2), scale), atol=1e-11)
    assert model.program(1).step("decoder.1.self_attention.scaled").op.formula == f"score {expression}"


def test_the_activation_is_that_of_the_file(tmp_path):
    model = model_of(tmp_path, activation_function="gelu")
    np.testing.assert_allclose(logits(model), gpt2_logits(GPT2, gpt2_tensors(GPT2), activation=gelu), atol=1e-11)


def test_the_inner_width_is_four_times_the_model_by_default(tmp_path):
    config = GPT2 | {"n_inner": None}
    model = model_of(tmp_path, n_inner=None)
    assert model.program(1).shape("decoder.0.feed_forward.hidden") == (1, 48)
    np.testing.assert_allclose(logits(model), gpt2_logits(config, gpt2_tensors(config)), atol=1e-11)


def test_a_sentence_longer_than_the_table_of_positions_is_refused(tmp_path):
    with pytest.raises(InputError, match="more than the 9"):
        model_of(tmp_path).trace(ids=[1] * 10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_head": 5}, "n_embd 12 is not divisible by n_head 5"),
        ({"activation_function": "quick_gelu"}, "activation_function 'quick_gelu' is not known"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"n_layer": 0}, "n_layer 0"),
        ({"n_inner": "wide"}, "n_inner 'wide'"),
        ({"layer_norm_epsilon": 0}, "layer_norm_epsilon 0"),
        ({"scale_attn_weights": "yes"}, "scale_attn_weights 'yes'"),
        ({"tie_word_embeddings": None}, "tie_word_embeddings None"),
        ({"pad_token_id": "x"}, "pad_token_id 'x'"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"n_positions": 8}, "wpe.weight"),
        ({"tie_word_embeddings": False}, "lm_head.weight is missing"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        model_of(tmp_path, gpt2_tensors(GPT2), **changes)


@pytest.mark.parametrize(
    ("given", "pad_id"),
    [
        ({"pad_token_id": 3}, 3),
        ({"pad_token_id": 3, "eos_token_id": 3}, None),
        ({"pad_token_id": 3, "eos_token_id": [2, 3]}, None),
        ({"pad_token_id": -1}, None),
        ({}, None),
    ],
)
def test_the_token_that_ends_a_text_is_no_padding(tmp_path, given, pad_id):
    assert model_of(tmp_path, **given).config.pad_id == pad_id


def test_the_sizes_are_told_in_one_line(tmp_path):
    assert model_of(tmp_path).config.summary == "GPT-2 · d_model 12 · 3 heads · d_ff 20 · 2 layers"
