"""Llama, Mistral, Qwen2 and Qwen3: heads, biases, rotary positions and windows in the forms of their files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from decoders import (
    IDS,
    LLAMA,
    check,
    frequencies,
    llama_logits,
    llama_tensors,
    load,
    logits,
)

from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.generation.rules import defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model
from tui_transformer.model.families import family_of

LLAMA_TURNS = frequencies(4, 100.0)
ATTENTION, MLP = ("q", "k", "v", "o"), ("gate", "up", "down")
OF_FAMILY = {"qwen2": {"biased": ("q", "k", "v")}, "qwen3": {"head_norms": True}}
"""Tensors that a family has besides Llama's."""

SLIDES = {"use_sliding_window": True, "sliding_window": 8}
FULL, SLIDING = "full_attention", "sliding_attention"


def llama(folder, family="llama", tensors=None, **changes) -> Model:
    config = LLAMA | changes
    given = llama_tensors(config, **OF_FAMILY.get(family, {})) if tensors is None else tensors
    return load(folder, {"model_type": family, **config}, given)


@pytest.mark.parametrize(
    ("family", "changes", "biased", "turns"),
    [
        *(("llama", {"num_key_value_heads": count}, (), LLAMA_TURNS) for count in (1, 2, 3, 6)),
        ("llama", {"attention_bias": True}, ATTENTION, LLAMA_TURNS),
        ("llama", {"mlp_bias": True}, MLP, LLAMA_TURNS),
        ("llama", {"attention_bias": True, "mlp_bias": True}, (*ATTENTION, *MLP), LLAMA_TURNS),
        ("llama", {"tie_word_embeddings": True}, (), LLAMA_TURNS),
        ("llama", {"head_dim": None, "num_key_value_heads": None}, (), frequencies(2, 100.0)),
        *(("mistral", {"sliding_window": window}, (), LLAMA_TURNS) for window in (None, 16, 4096)),
        ("qwen2", {}, ("q", "k", "v"), LLAMA_TURNS),
        ("qwen2", {"tie_word_embeddings": True}, ("q", "k", "v"), LLAMA_TURNS),
        ("qwen2", {"sliding_window": 3}, ("q", "k", "v"), LLAMA_TURNS),
        ("qwen2", {**SLIDES, "max_window_layers": 2}, ("q", "k", "v"), LLAMA_TURNS),
        ("qwen2", {**SLIDES, "sliding_window": 16, "max_window_layers": 0}, ("q", "k", "v"), LLAMA_TURNS),
        ("qwen2", {**SLIDES, "sliding_window": None, "max_window_layers": 0}, ("q", "k", "v"), LLAMA_TURNS),
        ("qwen2", {**SLIDES, "max_window_layers": 0, "layer_types": [FULL, FULL]}, ("q", "k", "v"), LLAMA_TURNS),
        ("qwen3", {"attention_bias": False}, (), LLAMA_TURNS),
        ("qwen3", {"attention_bias": True}, ATTENTION, LLAMA_TURNS),
    ],
)
def test_heads_biases_ties_and_windows_that_hide_nothing(tmp_path, family, changes, biased, turns):
    config = LLAMA | changes
    if config["head_dim"] is None:  # it follows from the model
        config |= {"head_dim": 2, "num_key_value_heads": 6}
    tensors = llama_tensors(config, biased=biased, head_norms=family == "qwen3")
    model = llama(tmp_path, family, tensors, **changes)
    check(model, llama_logits(config, tensors, turns))
    shape = (config["num_key_value_heads"], 5, config["head_dim"])
    assert model.program(5).shape("decoder.0.self_attention.key_rotated") == shape


@pytest.mark.parametrize(
    ("family", "changes", "windows"),
    [
        *(("mistral", {"sliding_window": window}, (window, window)) for window in (1, 3, 7, 8)),
        ("qwen2", {"max_window_layers": 1}, (None, 3)),
        ("qwen2", {"max_window_layers": 0}, (3, 3)),
        ("qwen2", {"layer_types": [SLIDING, FULL]}, (3, None)),
        ("qwen2", {"layer_types": [FULL, SLIDING], "max_window_layers": 0}, (None, 3)),
        ("qwen3", {"max_window_layers": 1}, (None, 3)),
    ],
)
def test_a_query_sees_so_many_keys_in_the_layers_that_slide(tmp_path, family, changes, windows):
    changes = SLIDES | {"sliding_window": 3} | changes
    model = llama(tmp_path, family, **changes)
    check(model, llama_logits(LLAMA, llama_tensors(LLAMA, **OF_FAMILY.get(family, {})), LLAMA_TURNS, windows))
    for layer, window in enumerate(windows):
        seen = (model.trace(ids=IDS)[f"decoder.{layer}.self_attention.weights"] > 0).sum(axis=-1)
        assert (seen == np.minimum(np.arange(len(IDS)) + 1, window or len(IDS))).all()


def test_a_file_of_the_bare_decoder_has_no_prefix(tmp_path):
    tensors = llama_tensors(LLAMA | {"tie_word_embeddings": True})
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    check(llama(tmp_path, tensors=bare, tie_word_embeddings=True), llama_logits(LLAMA, tensors, LLAMA_TURNS))


def test_queries_and_keys_of_qwen3_are_normalised_before_they_are_turned(tmp_path):
    steps = llama(tmp_path, "qwen3").program(1).by_name
    assert steps["decoder.0.self_attention.query_rotated"].inputs[0] == "decoder.0.self_attention.query_norm"


def test_the_width_of_a_head_of_qwen3_is_128_where_the_file_does_not_say():
    given = {key: value for key, value in LLAMA.items() if key != "head_dim"}
    assert family_of("qwen3").from_json(given).head_width == 128


def test_biases_are_no_setting_of_mistral(tmp_path):
    assert llama(tmp_path, "mistral", attention_bias=True).config.attention().bias == frozenset()


# Rotary positions


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
    model = llama(tmp_path, head_dim=8, **changes)
    np.testing.assert_allclose(model.config.rope_parameters.rotary(8).frequencies, turns, rtol=1e-14)
    check(model, llama_logits(config, llama_tensors(config), turns))


def test_the_three_cases_of_llama3_scaling_all_occur():
    ratio = llama3(100.0, 8, 8.0, 1.0, 4.0, 64) / frequencies(8, 100.0)
    assert ratio[0] == 1.0
    assert ratio[-1] == pytest.approx(0.125)
    assert 0.125 < ratio[2] < 1.0


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
YARN_TURNS = [1.0, 0.377129108, 0.134652153, 0.043750003, 0.011603971, 0.00538608711]


@pytest.mark.parametrize(
    ("changes", "turns", "factor"),
    [
        ({}, YARN_TURNS, 1.138629436111989),
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
        ({"attention_factor": 1.5}, YARN_TURNS, 1.5),
    ],
)
def test_yarn_is_that_of_another_implementation(tmp_path, changes, turns, factor):
    """The numbers are what transformers 5.23.0 computes in float32."""
    config, given = LLAMA | {"head_dim": 12}, {"head_dim": 12, "rope_scaling": YARN | changes}
    rotary = llama(tmp_path, **given).config.rope_parameters.rotary(12)
    np.testing.assert_allclose(rotary.frequencies, turns, rtol=1e-6)
    assert rotary.factor == pytest.approx(factor, rel=1e-12)
    wanted = llama_logits(config, llama_tensors(config), np.array(rotary.frequencies), factor=rotary.factor)
    check(llama(tmp_path, **given), wanted)


def test_yarn_takes_the_length_of_the_model_for_the_old_context_where_the_file_says_none(tmp_path):
    given = {"rope_type": "yarn", "factor": 2.0}
    assert llama(tmp_path, rope_scaling=given).config.rope_parameters.original_max_position_embeddings == 16


@pytest.mark.parametrize("kind", ["proportional", "ntk", None, ["linear"]])
def test_other_scalings_are_refused_by_name(tmp_path, kind):
    with pytest.raises(InputError, match=r"rope_type .* is not known: use default, linear, dynamic, llama3, yarn"):
        llama(tmp_path, rope_scaling={"rope_type": kind, "factor": 2.0})


# Windows


@pytest.mark.parametrize("budget", [0, 1 << 30])
def test_windows_of_dropped_weights_and_explanations_know_the_mask(tmp_path, budget):
    model = llama(tmp_path, "mistral", sliding_window=3)
    trace, whole = replace(model.trace(ids=IDS, budget=budget), block=2 * len(IDS)), model.trace(ids=IDS)
    for name in ("masked", "weights"):
        name = f"decoder.1.self_attention.{name}"
        part = trace.window(name, (range(2, 3), range(3, 7), range(1, 6)))
        np.testing.assert_allclose(part, whole[name][2:3, 3:7, 1:6], rtol=1e-12)
    masked = "decoder.0.self_attention.masked"
    notes = [[item.note for item in trace.explain_cell(masked, (0, 5, column)).items][1:] for column in range(8)]
    outside, inside, after = "outside the window of 3", "the query may look here", "the key comes after the query"
    assert [note for (note,) in notes] == [outside] * 3 + [inside] * 3 + [after] * 2
    assert trace.program.step(masked).op.formula == "score; −∞ outside the last 3 keys, on padding"


def test_padding_is_outside_the_window_of_real_tokens_only(tmp_path):
    model = llama(tmp_path, "mistral", sliding_window=3, pad_token_id=10)
    padded = model.trace(ids=[*IDS, 10, 10])
    np.testing.assert_allclose(padded["output.logits"][:-2], logits(model), atol=1e-12)


def test_what_is_written_with_kept_keys_has_the_logits_of_a_whole_run(tmp_path):
    model = llama(tmp_path, "mistral", sliding_window=3)
    writer = Writer(model, Settings(greedy=True, max_new_tokens=8), defaults_of(model).rules)
    *_, last = writer.run(writer.begin((3, 1)))
    assert len(last.ids) == 10
    whole = model.trace(ids=last.ids)["output.logits"]
    after = model.trace_after(kept_rows(model.trace(ids=last.ids[:9])), 9, [last.ids])
    np.testing.assert_allclose(after["output.logits"][-1], whole[-1], atol=1e-12)
    assert [int(row.argmax()) for row in whole[1:-1]] == list(last.written)


def kept_rows(trace: Trace) -> dict[str, np.ndarray]:
    """The keys, after they were turned, and the values of every layer."""
    parts = {"key": "key_rotated", "value": "value"}
    scopes = [f"decoder.{i}.self_attention" for i in range(2)]
    return {f"{scope}.{name}_kept": trace.array(f"{scope}.{step}") for scope in scopes for name, step in parts.items()}


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("llama", {"num_key_value_heads": 4}, "num_attention_heads 6 is not divisible by num_key_value_heads 4"),
        (
            "llama",
            {"num_attention_heads": 5, "head_dim": None},
            "hidden_size 12 is not divisible by num_attention_heads 5",
        ),
        ("llama", {"head_dim": 3}, "of 3 columns of a head is 3"),
        ("llama", {"head_dim": 0}, "head_dim 0"),
        ("llama", {"hidden_act": "xielu"}, "hidden_act 'xielu'"),
        ("llama", {"rms_norm_eps": -1e-6}, "rms_norm_eps"),
        ("llama", {"mlp_bias": 1}, "mlp_bias 1"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor other than 1"),
        ("llama", {"rope_theta": "big"}, "rope_theta 'big'"),
        ("llama", {"rope_theta": float("inf")}, "rope_theta inf"),
        ("llama", {"rope_scaling": {"type": "linear"}}, "linear has no factor"),
        ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "llama3 has no low_freq_factor"),
        ("llama", {"rope_scaling": {"rope_type": "llama3", **SCALED, "high_freq_factor": 1.0}}, "high_freq_factor 1.0"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 0.5}}, "factor 0.5"),
        ("llama", {"rope_scaling": {"type": "yarn"}}, "yarn has no factor"),
        ("llama", {"rope_scaling": YARN | {"beta_fast": -1}}, "beta_fast -1"),
        ("llama", {"rope_scaling": YARN | {"attention_factor": "x"}}, "attention_factor 'x'"),
        ("llama", {"rope_scaling": YARN | {"mscale": float("nan")}}, "mscale nan"),
        ("llama", {"rope_scaling": YARN | {"truncate": 1}}, "truncate 1"),
        ("llama", {"rope_scaling": YARN, "rope_theta": 1.0}, "rope_theta 1 "),
        ("llama", {"rope_scaling": "linear"}, "rope_parameters 'linear'"),
        ("llama", {"rope_parameters": {"full_attention": {"rope_theta": 5.0}}}, "rope_parameters"),
        ("llama", {"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ("llama", {"vocab_size": 12}, "embed_tokens.weight is 11 × 12"),
        ("llama", {"attention_bias": True}, "q_proj.bias is missing"),
        ("llama", {"num_hidden_layers": 3}, "layers.2"),
        ("mistral", {"sliding_window": 0}, "sliding_window 0"),
        ("qwen2", {"layer_types": [FULL, SLIDING]}, "layer_types says sliding_attention"),
        ("qwen2", {"layer_types": [FULL]}, "layer_types names 1 layers of 2"),
        ("qwen2", {"layer_types": [FULL, "chunked_attention"]}, "layer_types .*chunked_attention"),
        ("qwen2", {"layer_types": FULL}, "layer_types 'full_attention'"),
        ("qwen2", {"use_sliding_window": "no"}, "use_sliding_window 'no'"),
        ("qwen2", {"max_window_layers": -1}, "max_window_layers -1"),
        ("qwen2", {"rope_scaling": {"type": "longrope", "factor": 4.0}}, "type longrope has no short_factor"),
    ],
)
def test_what_cannot_be_computed_of_a_llama_is_refused_by_name(tmp_path, family, changes, message):
    with pytest.raises(InputError, match=message):
        llama(tmp_path, family, llama_tensors(LLAMA, **OF_FAMILY.get(family, {})), **changes)
