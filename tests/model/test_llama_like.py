"""Llama, Mistral, Qwen2 and Qwen3: heads, biases, rotary positions and windows in the forms of their files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plain_numpy import frequencies, turned
from reference import LEFT_OUT, reference_of

from tui_transformer.errors import InputError
from tui_transformer.model.families import family_of
from tui_transformer.model.families.rope import read_rope

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
A = "decoder.0.self_attention"
LLAMA = reference_of("llama")
FULL, SLIDING = "full_attention", "sliding_attention"
STEPS = {
    **{f"self_attn.{name[0]}_proj": f"self_attention.{name}" for name in ("query", "key", "value", "output")},
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.hidden",
    "mlp.down_proj": "feed_forward.output",
}
ATTENTION, MLP = tuple(STEPS)[:4], tuple(STEPS)[4:]
SCALED = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
YARN_TURNS = [1.0, 0.377129108, 0.134652153, 0.043750003, 0.011603971, 0.00538608711]


@pytest.mark.parametrize("count", [1, 2, 4, None])
def test_query_heads_share_as_many_key_heads_as_the_file_says(changed, count):
    """As many as the queries, and as wide as the model divided by them, where it does not say."""
    tensors = {
        name: np.tile(tensor, (2, 1))[: 8 * (count or 4)] if "k_proj" in name or "v_proj" in name else tensor
        for name, tensor in LLAMA.tensors().items()
    }
    sizes = {"num_key_value_heads": count} if count else {"num_key_value_heads": None, "head_dim": None}
    trace = changed("llama", tensors, **sizes).trace(ids=IDS)
    assert trace.program.shape(f"{A}.key_rotated") == (count or 4, 8, 8)
    key, value = (np.repeat(trace[f"{A}.{name}"], 4 // (count or 4), axis=0) for name in ("key_rotated", "value"))
    scores = trace[f"{A}.query_rotated"] @ key.swapaxes(1, 2)
    np.testing.assert_allclose(trace[f"{A}.scores"], scores, atol=1e-12)
    np.testing.assert_allclose(trace[f"{A}.context"], trace[f"{A}.weights"] @ value, atol=1e-12)


@pytest.mark.parametrize(
    ("family", "settings", "biased"),
    [
        ("llama", {}, ()),
        ("llama", {"attention_bias": True}, ATTENTION),
        ("llama", {"mlp_bias": True}, MLP),
        ("llama", {"attention_bias": True, "mlp_bias": True}, (*ATTENTION, *MLP)),
        ("mistral-window", {"attention_bias": True}, ()),
        ("qwen2", {}, ATTENTION[:3]),
        ("qwen3", {}, ()),
        ("qwen3", {"attention_bias": True}, ATTENTION),
    ],
)
def test_matrices_have_biases_where_the_file_says_so(changed, family, settings, biased):
    tensors, random = reference_of(family).tensors(), np.random.default_rng(2)
    names = {f"{layer}.{name}": step for layer in (0, 1) for name, step in STEPS.items() if name in biased}
    for name in names:
        rows = len(tensors[f"model.layers.{name}.weight"])
        tensors[f"model.layers.{name}.bias"] = random.normal(size=rows).astype("f4")
    trace = changed(family, tensors, **settings).trace(ids=IDS)
    steps = {f"decoder.{name[0]}.{step}.bias": f"model.layers.{name}.bias" for name, step in names.items()}
    assert {name for name in trace.program.weights if name.endswith(".bias")} == steps.keys()
    for step, name in steps.items():
        assert np.array_equal(trace[step].ravel(), tensors[name]), step


@pytest.mark.parametrize(
    ("family", "settings", "windows"),
    [
        *(("mistral-window", {"sliding_window": window}, (window, window)) for window in (1, 3, 7, 8)),
        *(("mistral-window", {"sliding_window": window}, (None, None)) for window in (None, 16, 4096)),
        ("mistral-window", {"sliding_window": 3, "layer_types": [SLIDING, FULL]}, (3, None)),
        ("mistral-window", {"sliding_window": 3, "layer_types": None}, (3, 3)),
        ("qwen2-window", {"layer_types": LEFT_OUT, "sliding_window": 3}, (None, 3)),
        ("qwen2-window", {"layer_types": LEFT_OUT, "max_window_layers": 0}, (4, 4)),
        ("qwen2-window", {"layer_types": LEFT_OUT, "max_window_layers": 2}, (None, None)),
        ("qwen2-window", {"layer_types": LEFT_OUT, "use_sliding_window": False}, (None, None)),
        ("qwen2-window", {"layer_types": LEFT_OUT, "sliding_window": 16, "max_window_layers": 0}, (None, None)),
        ("qwen2-window", {"layer_types": LEFT_OUT, "sliding_window": None, "max_window_layers": 0}, (None, None)),
        ("qwen2-window", {"layer_types": [FULL, FULL], "max_window_layers": 0}, (None, None)),
        ("qwen2-window", {"layer_types": [SLIDING, FULL]}, (4, None)),
        ("qwen2-window", {"layer_types": [FULL, SLIDING], "max_window_layers": 0}, (None, 4)),
        (
            "qwen3",
            {"layer_types": LEFT_OUT, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
            (None, 3),
        ),
    ],
)
def test_a_query_sees_so_many_keys_in_the_layers_that_slide(changed, family, settings, windows):
    trace = changed(family, **settings).trace(ids=IDS)
    for layer, window in enumerate(windows):
        seen = (trace[f"decoder.{layer}.self_attention.weights"] > 0).sum(axis=-1)
        assert (seen == np.minimum(np.arange(len(IDS)) + 1, window or len(IDS))).all()


def test_a_file_of_the_bare_decoder_has_no_prefix_and_a_tied_head_the_table(changed):
    bare = {name.removeprefix("model."): tensor for name, tensor in LLAMA.tensors().items() if name != "lm_head.weight"}
    trace = changed("llama", bare, tie_word_embeddings=True).trace(ids=LLAMA.expected["input_ids"].tolist())
    np.testing.assert_allclose(trace["decoder.norm"], LLAMA.expected["hidden_2"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        trace["output.logits"], trace["decoder.norm"] @ bare["embed_tokens.weight"].T, atol=1e-12
    )


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


def rotary(width: int, **settings: Any):
    return read_rope({"rope_theta": 100.0, "max_position_embeddings": 16} | settings).rotary(width)


@pytest.mark.parametrize(
    ("settings", "turns"),
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
def test_old_and_new_spellings_of_rotary_positions_are_read(settings, turns):
    np.testing.assert_allclose(rotary(8, **settings).frequencies, turns, rtol=1e-14)
    ratio = llama3(100.0, 8, 8.0, 1.0, 4.0, 64) / frequencies(8, 100.0)
    assert ratio[0] == 1.0 > ratio[2] > 0.125 == pytest.approx(ratio[-1]), "all three cases occur"


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
def test_yarn_is_that_of_another_implementation(changes, turns, factor):
    """The numbers are what transformers 5.23.0 computes in float32."""
    turn = rotary(12, rope_scaling=YARN | changes)
    np.testing.assert_allclose(turn.frequencies, turns, rtol=1e-6)
    assert turn.factor == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("settings", [{}, {"rope_parameters": YARN | {"factor": 2.0}}], ids=["default", "yarn"])
def test_queries_and_keys_are_turned_by_the_settings_of_the_file(changed, settings):
    model = changed("llama", **settings)
    turn, trace = model.config.rope_parameters.rotary(8), model.trace(ids=IDS)
    assert turn.factor == (1.0 if not settings else pytest.approx(0.1 * np.log(2.0) + 1.0))
    for name in ("query", "key"):
        wanted = turned(trace[f"{A}.{name}"], np.array(turn.frequencies), turn.factor)
        np.testing.assert_allclose(trace[f"{A}.{name}_rotated"], wanted, rtol=0, atol=1e-12)


def test_yarn_takes_the_length_of_the_model_for_the_old_context_and_a_head_of_qwen3_128_where_the_file_says_none():
    given = {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}, "max_position_embeddings": 16}
    assert read_rope(given).original_max_position_embeddings == 16
    given = reference_of("qwen3").config()
    del given["head_dim"]
    assert family_of("qwen3").from_json(given).head_width == 128


# Windows


def test_explanations_know_the_window(changed):
    trace = changed("mistral-window", sliding_window=3).trace(ids=IDS)
    notes = [[item.note for item in trace.explain_cell(f"{A}.masked", (0, 5, i)).items][1:] for i in range(8)]
    outside, inside, after = "outside the window of 3", "the query may look here", "the key comes after the query"
    assert [note for (note,) in notes] == [outside] * 3 + [inside] * 3 + [after] * 2
    assert trace.program.step(f"{A}.masked").op.formula == "score; −∞ outside the last 3 keys, on padding"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 361}, "embed_tokens.weight is 360 × 32"),
        ({"attention_bias": True}, "q_proj.bias is missing"),
        ({"num_hidden_layers": 3}, "layers.2"),
    ],
)
def test_tensors_that_do_not_fit_the_settings_are_refused_by_name(changed, settings, message):
    with pytest.raises(InputError, match=message):
        changed("llama", **settings)
