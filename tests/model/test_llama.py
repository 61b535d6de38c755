"""Llama in the forms that its checkpoints have."""

from __future__ import annotations

import numpy as np
import pytest
from decoders import LLAMA, frequencies, llama_logits, llama_tensors, load, logits

from tui_transformer.errors import InputError
from tui_transformer.model import Model

RAW = {"model_type": "llama", **LLAMA}
TURNS = frequencies(4, 100.0)


def model_of(folder, tensors=None, **changes) -> Model:
    config = RAW | changes
    return load(folder, config, llama_tensors(config) if tensors is None else tensors)


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_query_heads_share_key_heads(tmp_path, kv_heads):
    config = LLAMA | {"num_key_value_heads": kv_heads}
    model = model_of(tmp_path, num_key_value_heads=kv_heads)
    np.testing.assert_allclose(logits(model), llama_logits(config, llama_tensors(config), TURNS), atol=1e-11)
    assert model.program(5).shape("decoder.0.self_attention.key_rotated") == (kv_heads, 5, 4)


@pytest.mark.parametrize(
    ("changes", "biased"),
    [
        ({"attention_bias": True}, ("q", "k", "v", "o")),
        ({"mlp_bias": True}, ("gate", "up", "down")),
        ({"attention_bias": True, "mlp_bias": True}, ("q", "k", "v", "o", "gate", "up", "down")),
    ],
)
def test_biases_are_where_the_file_says(tmp_path, changes, biased):
    tensors = llama_tensors(LLAMA, biased=biased)
    model = model_of(tmp_path, tensors, **changes)
    np.testing.assert_allclose(logits(model), llama_logits(LLAMA, tensors, TURNS), atol=1e-11)


def test_the_head_may_be_tied(tmp_path):
    config = LLAMA | {"tie_word_embeddings": True}
    model = model_of(tmp_path, tie_word_embeddings=True)
    np.testing.assert_allclose(logits(model), llama_logits(config, llama_tensors(config), TURNS), atol=1e-11)


def test_the_width_of_a_head_follows_from_the_model_by_default(tmp_path):
    config = LLAMA | {"head_dim": 2, "num_key_value_heads": 6}
    given = {"head_dim": None, "num_key_value_heads": None}
    model = model_of(tmp_path, llama_tensors(config), **given)
    wanted = llama_logits(config, llama_tensors(config), frequencies(2, 100.0))
    np.testing.assert_allclose(logits(model), wanted, atol=1e-11)


def test_a_file_of_the_bare_decoder_has_no_prefix(tmp_path):
    tensors = llama_tensors(LLAMA | {"tie_word_embeddings": True})
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    model = model_of(tmp_path, bare, tie_word_embeddings=True)
    np.testing.assert_allclose(logits(model), llama_logits(LLAMA, tensors, TURNS), atol=1e-11)


def llama3(theta, width, factor, low, high, old):
    """The three cases as the published code tells them apart, by wavelength."""
    turns = []
    for frequency in frequencies(width, theta):
        wavelength = 2.0 * np.pi / frequency
        if wavelength < old / high:
            turns.append(frequency)
        elif wavelength > old / low:
            turns.append(frequency / factor)
        else:
            smooth = (old / wavelength - low) / (high - low)
            turns.append((1.0 - smooth) * frequency / factor + smooth * frequency)
    return np.array(turns)


SCALED = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("changes", "turns"),
    [
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}, frequencies(8, 50.0)),
        ({"rope_theta": 50, "rope_scaling": None}, frequencies(8, 50.0)),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, frequencies(8, 100.0) / 2.0),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, frequencies(8, 100.0) / 2.0),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, frequencies(8, 100.0)),
        ({"rope_scaling": {"rope_type": "llama3", **SCALED}}, llama3(100.0, 8, 8.0, 1.0, 4.0, 64)),
        (
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 50.0, **SCALED}},
            llama3(50.0, 8, 8.0, 1.0, 4.0, 64),
        ),
    ],
)
def test_old_and_new_spellings_of_rotary_positions_are_read(tmp_path, changes, turns):
    config = LLAMA | {"head_dim": 8}
    model = model_of(tmp_path, head_dim=8, **changes)
    np.testing.assert_allclose(model.config.rope_parameters.rotary(8).frequencies, turns, rtol=1e-14)
    np.testing.assert_allclose(logits(model), llama_logits(config, llama_tensors(config), turns), atol=1e-11)


def test_the_three_cases_of_llama3_scaling_all_occur():
    ratio = llama3(100.0, 8, 8.0, 1.0, 4.0, 64) / frequencies(8, 100.0)
    assert ratio[0] == 1.0
    assert ratio[-1] == pytest.approx(0.125)
    assert 0.125 < ratio[2] < 1.0


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("changes", "turns", "factor"),
    [
        ({}, [1.0, 0.377129108, 0.134652153, 0.043750003, 0.011603971, 0.00538608711], 1.138629436111989),
        (
            {"beta_fast": 4.0, "beta_slow": 0.5, "truncate": False},
            [1.0, 0.464158893, 0.168793753, 0.0506643951, 0.011603971, 0.00538608711],
            1.138629436111989,
        ),
        (
            {"factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 1.0},
            [1.0, 0.464158893, 0.215443447, 0.100000001, 0.0388733, 0.0145424344],
            0.9210423553163399,
        ),
        ({"attention_factor": 1.5}, [1.0, 0.377129108, 0.134652153, 0.043750003, 0.011603971, 0.00538608711], 1.5),
    ],
)
def test_yarn_is_that_of_another_implementation(tmp_path, changes, turns, factor):
    """The numbers are what transformers 5.23.0 computes in float32."""
    config, given = LLAMA | {"head_dim": 12}, {"head_dim": 12, "rope_scaling": YARN | changes}
    rotary = model_of(tmp_path, **given).config.rope_parameters.rotary(12)
    np.testing.assert_allclose(rotary.frequencies, turns, rtol=1e-6)
    assert rotary.factor == pytest.approx(factor, rel=1e-12)
    wanted = llama_logits(config, llama_tensors(config), np.array(rotary.frequencies), factor=rotary.factor)
    np.testing.assert_allclose(logits(model_of(tmp_path, **given)), wanted, atol=1e-11)


def test_yarn_takes_the_length_of_the_model_for_the_old_context_where_the_file_says_none(tmp_path):
    given = {"rope_type": "yarn", "factor": 2.0}
    assert model_of(tmp_path, rope_scaling=given).config.rope_parameters.original_max_position_embeddings == 16


@pytest.mark.parametrize("kind", ["proportional", "ntk", None, ["linear"]])
def test_other_scalings_are_refused_by_name(tmp_path, kind):
    with pytest.raises(InputError, match=r"rope_type .* is not known: use default, linear, dynamic, llama3, yarn"):
        model_of(tmp_path, rope_scaling={"rope_type": kind, "factor": 2.0})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_key_value_heads": 4}, "num_attention_heads 6 is not divisible by num_key_value_heads 4"),
        ({"num_attention_heads": 5, "head_dim": None}, "hidden_size 12 is not divisible by num_attention_heads 5"),
        ({"head_dim": 3}, "of 3 columns of a head is 3"),
        ({"head_dim": 0}, "head_dim 0"),
        ({"hidden_act": "xielu"}, "hidden_act 'xielu'"),
        ({"rms_norm_eps": -1e-6}, "rms_norm_eps"),
        ({"mlp_bias": 1}, "mlp_bias 1"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor other than 1"),
        ({"rope_theta": "big"}, "rope_theta 'big'"),
        ({"rope_theta": float("inf")}, "rope_theta inf"),
        ({"rope_scaling": {"type": "linear"}}, "linear has no factor"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "llama3 has no low_freq_factor"),
        ({"rope_scaling": {"rope_type": "llama3", **SCALED, "high_freq_factor": 1.0}}, "high_freq_factor 1.0"),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, "factor 0.5"),
        ({"rope_scaling": {"type": "yarn"}}, "yarn has no factor"),
        ({"rope_scaling": YARN | {"beta_fast": -1}}, "beta_fast -1"),
        ({"rope_scaling": YARN | {"attention_factor": "x"}}, "attention_factor 'x'"),
        ({"rope_scaling": YARN | {"mscale": float("nan")}}, "mscale nan"),
        ({"rope_scaling": YARN | {"truncate": 1}}, "truncate 1"),
        ({"rope_scaling": YARN, "rope_theta": 1.0}, "rope_theta 1 "),
        ({"rope_scaling": "linear"}, "rope_parameters 'linear'"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 5.0}}}, "rope_parameters"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ({"vocab_size": 12}, "embed_tokens.weight is 11 × 12"),
        ({"attention_bias": True}, "q_proj.bias is missing"),
        ({"num_hidden_layers": 3}, "layers.2"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        model_of(tmp_path, llama_tensors(LLAMA), **changes)


def test_the_sizes_are_told_in_one_line(tmp_path):
    wanted = "Llama · d_model 12 · 6 heads on 2 key heads · d_ff 20 · 2 layers"
    assert model_of(tmp_path).config.summary == wanted
