"""Settings of a family: computed, or refused by name."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest
from plain_numpy import gelu, gelu_tanh, relu, silu
from reference import REFERENCES
from refusing import refuses

from tui_transformer.engine.ops import LayerNormByHead
from tui_transformer.errors import InputError
from tui_transformer.model.families import family_of
from tui_transformer.model.layers import alibi_slopes
from tui_transformer.model.sequence import Lengths

LAYERS = ["full_attention", "full_attention"]
SLIDING, FULL = "sliding_attention", "full_attention"
DEBERTA, MODERN = "deberta-v2", "modernbert"
FIXED = {
    **dict.fromkeys(
        ("bert", "distilbert", "roberta", "electra"), "-is_decoder -add_cross_attention -is_encoder_decoder"
    ),
    "bart": """-normalize_before +normalize_embedding -add_final_layer_norm -static_position_embeddings
        +is_encoder_decoder -is_decoder +is_causal""",
    "marian": """-normalize_before -normalize_embedding -add_final_layer_norm +static_position_embeddings
        +is_encoder_decoder -is_decoder +is_causal""",
    "mbart": "+normalize_before",
    "m2m_100": "-is_decoder",
    "t5": "-is_decoder +is_causal",
    "gpt2": "-add_cross_attention +is_causal",
    "gpt_bigcode": "+multi_query +scale_attn_weights",
    "nomic_bert": "-prenorm",
    "bloom": "-apply_residual_connection_post_layernorm -slow_but_exact",
    "opt": "+layer_norm_elementwise_affine",
    "cohere2": "-use_qk_norm",
}
"""Settings that are on (+) or off (−) in all that is computed of a family."""

REFUSED = [
    ("bert", {"position_embedding_type": "relative_key"}, "'relative_key' is not supported: only 'absolute'"),
    ("bert", {"position_embedding_type": None}, "position_embedding_type None is not supported"),
    ("bert", {"pruned_heads": {"0": [1]}}, r"pruned_heads .* is not supported: only \{\}"),
    *((name, {"pad_token_id": 999}, "pad_token_id 999 is outside the voc") for name in ("bert", "bart", "t5")),
    ("roberta", {"pad_token_id": None}, "pad_token_id None leaves no position"),
    ("roberta", {"pad_token_id": 65}, "pad_token_id 65 leaves no position"),
    ("gpt2", {"per_layer_config": {"1": {"n_inner": 8}}}, "per_layer_config: only layers that are all alike"),
    ("gpt2", {"n_inner": "wide"}, "n_inner 'wide'"),
    ("gpt2", {"scale_attn_weights": "yes"}, "scale_attn_weights 'yes'"),
    ("gpt2", {"pad_token_id": "x"}, "pad_token_id 'x'"),
    ("gpt_neox", {"rope_parameters": None, "rotary_pct": 0.4}, "partial_rotary_factor 0.4 of 8 columns of a head is 3"),
    ("gpt_neox", {"rope_parameters": None, "rotary_pct": 1.5}, "partial_rotary_factor 1.5"),
    ("gpt_neox", {"rope_parameters": None, "rotary_emb_base": 0}, "rope_theta 0"),
    ("llama", {"num_key_value_heads": 3}, "num_attention_heads 4 is not divisible by num_key_value_heads 3"),
    ("llama", {"num_attention_heads": 5, "head_dim": None}, "hidden_size 32 is not divisible by num_attention_heads 5"),
    ("llama", {"head_dim": 3}, "of 3 columns of a head is 3"),
    ("llama", {"head_dim": 0}, "head_dim 0"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor other than 1"),
    ("qwen2-window", {"layer_types": LAYERS[:1]}, "layer_types names 1 layers of 2"),
    ("qwen2-window", {"layer_types": [FULL, SLIDING], "sliding_window": None}, "layer_types says sliding_attention"),
    ("qwen2-window", {"layer_types": [FULL, "chunked_attention"]}, "layer_types .*chunked_attention"),
    ("qwen2-window", {"layer_types": FULL}, "layer_types 'full_attention'"),
    ("qwen2-window", {"max_window_layers": -1}, "max_window_layers -1"),
    ("qwen2-window", {"rope_scaling": {"type": "longrope", "factor": 4.0}}, "type longrope has no short_factor"),
    ("bart", {"extra_pos_embeddings": 0}, "extra_pos_embeddings"),
    ("marian", {"decoder_vocab_size": 14}, "decoder_vocab_size"),
    ("t5", {"feed_forward_proj": "gated-mish"}, "feed_forward_proj"),
    ("t5", {"feed_forward_proj": "gated-gelu-new"}, "feed_forward_proj"),
    ("t5", {"feed_forward_proj": 3}, "feed_forward_proj"),
    ("t5", {"relative_attention_num_buckets": 3}, "relative_attention_num_buckets"),
    ("t5", {"relative_attention_max_distance": 4}, "relative_attention_max_distance"),
    ("m2m_100", {"pad_token_id": None}, "pad_token_id None leaves no position"),
    ("pegasus", {"extra_pos_embeddings": 2}, "extra_pos_embeddings 2 is not supported: only 1 is"),
    ("mixtral", {"num_experts_per_tok": 9}, "num_experts_per_tok"),
    ("mixtral", {"num_local_experts": 0}, "num_local_experts"),
    ("mixtral", {"num_experts": 7}, "same setting"),
    ("qwen2_moe", {"mlp_only_layers": [-1]}, "mlp_only_layers"),
    ("qwen2_moe", {"mlp_only_layers": "all"}, "mlp_only_layers"),
    ("qwen2_moe", {"decoder_sparse_step": 0}, "decoder_sparse_step"),
    ("olmoe", {"clip_qkv": 8.0}, "clip_qkv"),
    ("gpt_oss", {"swiglu_limit": 0}, "swiglu_limit"),
    ("gpt_oss", {"swiglu_alpha": "much"}, "swiglu_alpha"),
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
    (DEBERTA, {"position_buckets": 40}, "position_buckets 40 leave no far distance: max_relative_positions is 16"),
    (MODERN, {"rope_parameters": {"rope_theta": 5.0}}, "rope_parameters .* has no table for each kind of layer"),
    (MODERN, {"rope_parameters": {FULL: {"rope_type": "axial"}}}, "rope_type 'axial' is not known"),
    (MODERN, {"rope_parameters": {FULL: {"partial_rotary_factor": 0.5}}}, "partial_rotary_factor other than 1"),
    (MODERN, {"layer_types": [SLIDING]}, "layer_types names 1 layers of 2"),
    (MODERN, {"layer_types": [SLIDING, "chunked_attention"]}, "layer_types .* is not a list of"),
    (MODERN, {"classifier_activation": "tanhshrink"}, "classifier_activation 'tanhshrink' is not known"),
    (MODERN, {"local_attention": 0}, "local_attention 0 is not a whole number from 1"),
    ("glm", {"rope_parameters": {"partial_rotary_factor": 0.75}}, "6 columns that are turned do not divide head_dim 8"),
    ("gptj", {"rotary_dim": 6}, "rotary_dim 6"),
    ("gptj", {"rotary_dim": None}, "rotary_dim None"),
    ("nomic_bert", {"rotary_scaling_factor": 2.0}, "rotary_scaling_factor 2.0 is not supported"),
    ("nomic_bert", {"head_dim": 4}, "head_dim 4"),
    ("gemma", {"use_bidirectional_attention": True}, "use_bidirectional_attention True is not supported"),
    ("gemma2", {"use_bidirectional_attention": True}, "use_bidirectional_attention True"),
    ("gemma", {"head_dim": None}, "head_dim None"),
    ("gemma", {"head_dim": 7}, "rotary positions turn pairs of columns"),
    ("gemma2", {"attn_logit_softcapping": -1.0}, "attn_logit_softcapping -1.0"),
    ("gemma2", {"final_logit_softcapping": 30}, "final_logit_softcapping 30 is a whole number"),
    ("gemma2", {"query_pre_attn_scalar": 0.5}, "query_pre_attn_scalar 0.5 is not a whole number"),
    ("gpt_neo", {"attention_layers": ["local", "global"]}, "are not those of attention_types"),
    ("gemma3", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping 50.0 is not supported"),
    ("gemma3", {"use_bidirectional_attention": "yes"}, "use_bidirectional_attention 'yes'"),
    ("gemma3", {"rope_parameters": {"rope_theta": 5.0}}, "is not a table for each of full_attention"),
    ("gemma3", {"rope_parameters": {"full_attention": 5}}, "rope_parameters of full_attention 5"),
    ("gemma3", {"rope_scaling": {"rope_type": "linear"}}, "rope_parameters of type linear has no factor"),
    ("gemma3", {"layer_types": None, "sliding_window_pattern": 0}, "sliding_window_pattern 0"),
    ("gemma3", {"layer_types": ["chunked_attention"] * 2}, "layer_types"),
    ("olmo3", {"layer_types": ["sliding_attention"] * 2, "sliding_window": None}, "no sliding_window in use"),
    ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers names 1 layers of 2"),
    ("smollm3", {"no_rope_layers": [1, 2]}, "is not a list of 0 and 1"),
    ("smollm3", {"no_rope_layers": None, "no_rope_layer_interval": 0}, "no_rope_layer_interval 0"),
    ("granite", {"residual_multiplier": 0}, "residual_multiplier 0"),
    ("granite", {"logits_scaling": None}, "logits_scaling None"),
    ("phi", {"rope_parameters": {"partial_rotary_factor": 0.2}}, "rotary positions turn pairs of columns"),
    ("cohere", {"logit_scale": None}, "logit_scale None"),
    ("falcon", {"new_decoder_architecture": True, "parallel_attn": False}, "without parallel_attn"),
    ("falcon", {"num_ln_in_parallel_attn": 2}, "num_ln_in_parallel_attn 2 without new_decoder_architecture"),
    ("falcon", {"num_ln_in_parallel_attn": 3}, "num_ln_in_parallel_attn 3 is neither 1 nor 2"),
    ("falcon", {"multi_query": False}, "num_kv_heads 2 without multi_query"),
    ("falcon", {"head_dim": 16}, "head_dim 16 is not supported"),
    ("falcon", {"n_embed": 64}, "n_embed 64 and hidden_size 32 are the same setting"),
    ("gpt_neo", {"attention_types": [[["global"], 1]]}, "attention_types names 1 layers of 2"),
    ("gpt_neo", {"attention_types": [["global", 2]]}, "attention_types"),
    ("gpt_neo", {"attention_types": [[["global"], 1 << 40]]}, "attention_types"),
    ("gpt_neo", {"attention_types": [[["both"], 2]]}, "is not a list of global and local"),
    ("gpt_neo", {"window_size": None}, "window_size None"),
    ("cohere2", {"sliding_window_pattern": 0}, "sliding_window_pattern 0"),
    ("exaone4", {"layer_types": None, "sliding_window_pattern": "LLG"}, "sliding_window_pattern 'LLG' without"),
    ("exaone4", {"num_key_value_heads": 4}, "num_attention_heads 6 is not divisible"),
    ("exaone4", {"sliding_window_pattern": []}, r"pattern \[\] is neither a count of layers nor letters"),
    ("cohere", {"logit_scale": 1}, "logit_scale 1 is a whole number"),
    ("cohere2", {"logit_scale": 2}, "logit_scale 2 is a whole number"),
    ("gpt_oss", {"swiglu_alpha": 2}, "swiglu_alpha 2 is a whole number"),
    ("gpt_oss", {"swiglu_limit": 7}, "swiglu_limit 7 is a whole number"),
    ("helium", {"head_dim": None}, "head_dim None"),
    ("llama", {"pad_token_id": 1 << 63}, "is not a token ID .a whole number from 0 to 4,294,967,295, or null"),
]


def settings_of(name: str) -> dict[str, object]:
    return json.loads((REFERENCES / name / "config.json").read_text())


def read(raw):
    return family_of(raw["model_type"]).from_json(raw)


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_what_is_not_computed_is_refused_by_name(name, changes, message):
    refuses(message, lambda: read(settings_of(name) | changes))


OF_ALL = [
    ("mish", "hidden_act activation activation_function dense_act_fn feed_forward_proj", "{key} 'mish' is not known"),
    (0, "num_hidden_layers n_layers n_layer num_layers encoder_layers decoder_layers", "{key} 0 is not a whole number"),
    ("50", "vocab_size max_position_embeddings type_vocab_size", "{key} '50' is not a whole number"),
    (0, "layer_norm_eps layer_norm_epsilon rms_norm_eps norm_epsilon norm_eps", "{key} 0 "),
    (2, "layer_norm_eps layer_norm_epsilon rms_norm_eps norm_epsilon norm_eps", "{key} 2 "),
    (1 << 20, "decoder_start_token_id", "{key} 1048576 is outside the vocabulary"),
]
HEADS = ("num_attention_heads", "n_heads", "n_head", "encoder_attention_heads", "decoder_attention_heads")


@pytest.mark.parametrize("name", sorted(folder.name for folder in REFERENCES.iterdir()))
def test_activations_sizes_and_heads_that_cannot_be_are_refused_in_every_family(name):
    settings = settings_of(name)
    wrong = [(key, value, says) for value, keys, says in OF_ALL for key in keys.split()]
    if not settings.keys() & {"head_dim", "d_kv"}:
        wrong += [(key, 5, "is not divisible by {key} 5") for key in HEADS]
    for key, value, says in wrong:
        if key in settings:
            refuses(says.format(key=key), lambda key=key, value=value: read(settings | {key: value}))


UNSAID = {
    "bert": {"layer_norm_eps": 1e-12, "hidden_act": "gelu", "type_vocab_size": 2, "pad_token_id": 0},
    "distilbert": {
        "activation": "gelu",
        "sinusoidal_pos_embds": False,
        "pad_token_id": 0,
        "max_position_embeddings": 512,
    },
    "roberta": {"hidden_act": "gelu", "pad_token_id": 1, "tie_word_embeddings": True},
    "bart": {"activation_function": "gelu", "scale_embedding": False, "tie_word_embeddings": True, "pad_token_id": 1},
    "marian": {"activation_function": "gelu", "tie_word_embeddings": True, "share_encoder_decoder_embeddings": True},
    "t5": {"feed_forward_proj": "relu", "scale_decoder_outputs": True, "tie_word_embeddings": True},
    "gpt2": {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
    "gpt_neox": {"hidden_act": "gelu", "layer_norm_eps": 1e-5, "attention_bias": True, "use_parallel_residual": True},
    "llama": {"hidden_act": "silu", "rms_norm_eps": 1e-6, "attention_bias": False, "mlp_bias": False},
    "mistral-window": {"hidden_act": "silu", "sliding_window": 4096, "tie_word_embeddings": False},
    "qwen2": {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28, "layer_types": None},
    "qwen3": {"attention_bias": False, "use_sliding_window": False, "tie_word_embeddings": False},
}
"""What a setting is where a file does not say it."""
UNSAID |= {name: {"type_vocab_size": 2} for name in ("electra", "albert")}
UNSAID["gpt2"] |= {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "n_inner": None}
for name in ("bert", "gpt_neox", "llama"):
    UNSAID[name] |= {"tie_word_embeddings": name == "bert"}


@pytest.mark.parametrize("name", UNSAID)
def test_what_a_file_does_not_say_is_as_transformers_has_it(name):
    for key, value in UNSAID[name].items():
        unsaid = {other: each for other, each in settings_of(name).items() if other not in (key, "dense_act_fn")}
        assert read(unsaid) == read(unsaid | {key: value}), key


@pytest.mark.parametrize("name", FIXED)
def test_a_switch_that_changes_what_is_computed_is_refused_by_name(name):
    for sign, key in ((each[0], each[1:]) for each in FIXED[name].split()):
        on = sign == "+"
        read(settings_of(name) | {key: on})
        with pytest.raises(InputError, match=f"{key} {not on} is not supported: only {on} is"):
            read(settings_of(name) | {key: not on})


@pytest.mark.parametrize("name", ["bert", "t5", "llama", "gemma2", "gpt_neox"])
def test_settings_can_be_given_to_another_process(name):
    config = read(settings_of(name))
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - what was just made


@pytest.mark.parametrize(
    ("family", "settings", "function"),
    [
        *(("bert", {"hidden_act": name}, gelu) for name in ("gelu", "gelu_python")),
        *(("bert", {"hidden_act": name}, gelu_tanh) for name in ("gelu_new", "gelu_pytorch_tanh")),
        *(("bert", {"hidden_act": name}, silu) for name in ("silu", "swish")),
        *(("bert", {"hidden_act": "relu"}, relu), ("roberta", {"hidden_act": "relu"}, relu)),
        *(("distilbert", {"activation": "silu"}, silu), ("marian", {"activation_function": "gelu_new"}, gelu_tanh)),
        *(("bart", {"activation_function": "relu"}, relu), ("gpt2", {"activation_function": "gelu"}, gelu)),
        *(("gpt_neox", {"hidden_act": "gelu_fast"}, gelu_tanh), ("umt5", {}, gelu_tanh)),
        ("umt5", {"feed_forward_proj": "gated-silu", "dense_act_fn": "silu"}, silu),
    ],
)
def test_activations_are_those_of_the_file_but_in_the_head_of_a_roberta(changed, family, settings, function):
    trace = changed(family, **settings).trace(ids=[4, 9, 2, 11])
    places = [name.removesuffix(".activation") for name in trace.names if name.endswith(".activation")]
    assert len(places) >= 2
    for place in places:
        read = trace[f"{place}.gate" if f"{place}.gate" in trace.names else f"{place}.hidden"]
        wanted = gelu if (family, place) == ("roberta", "output.transform") else function
        np.testing.assert_allclose(trace[f"{place}.activation"], wanted(read), atol=1e-12)


def layers_of(raw):
    return read(raw).describe().decoder.layers


WINDOWS = [
    ("gemma2", {"num_hidden_layers": 4}, [3, None, 3, None]),
    ("gemma3", {"num_hidden_layers": 7}, [3, 3, 3, 3, 3, None, 3]),
    ("olmo3", {"num_hidden_layers": 5}, [3, 3, 3, None, 3]),
    ("smollm3", {"num_hidden_layers": 4, "no_rope_layers": None}, [None] * 4),
    ("smollm3", {"num_hidden_layers": 4, "no_rope_layers": None, "use_sliding_window": True}, [None, None, None, 3]),
    ("gpt_oss", {"num_hidden_layers": 5}, [3, None, 3, None, 3]),
    ("exaone4", {"sliding_window": None, "sliding_window_pattern": 0}, [None, None]),
]


@pytest.mark.parametrize(("name", "changes", "windows"), WINDOWS)
def test_windows_without_a_list_of_kinds_are_where_the_family_has_them(name, changes, windows):
    layers = layers_of(settings_of(name) | {"layer_types": None, "sliding_window": 3} | changes)
    assert [layer.attention.window for layer in layers] == windows
    if name in ("smollm3", "exaone4"):  # the fourth layer of a SmolLM3 turns nothing
        assert [layer.attention.rotary is None for layer in layers] == [i == 3 for i in range(len(layers))]


def test_distances_of_falcon_are_divided_as_its_scores_are():
    """The slopes of Press et al. (2022) for 4 heads, and √d_k: 32 columns ÷ 4 heads are 8."""
    powers = {1: [8], 2: [4, 8], 8: range(1, 9), 6: [2, 4, 6, 8, 1, 3]}
    for heads, each in powers.items():
        np.testing.assert_allclose(alibi_slopes(heads), [2.0**-power for power in each], rtol=1e-14)
    attention = layers_of(settings_of("falcon") | {"alibi": True})[0].attention
    assert attention.rotary is None
    assert attention.score_bias.slopes == pytest.approx([2.0**-power / math.sqrt(8) for power in (2, 4, 6, 8)])


def test_windows_may_be_on_both_sides_and_layers_with_one_have_their_own_rotary_positions():
    for name, old, full, sliding in (
        ("gemma3", {"rope_theta": 50.0, "rope_local_base_freq": 7.0}, 50.0, 7.0),
        ("gemma3", {}, 1e6, 1e4),
        ("olmo3", {"rope_theta": 50.0}, 50.0, 5e5),
        ("olmo3", {}, 5e5, 5e5),
    ):
        raw = settings_of(name) | old
        del raw["rope_parameters"]
        ropes = read(raw).rope_parameters
        assert (ropes.full_attention.rope_theta, ropes.sliding_attention.rope_theta) == (full, sliding)
    raw = settings_of("gemma3") | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    with_window, without = (layer.attention.rotary.frequencies for layer in layers_of(raw))
    np.testing.assert_allclose(with_window[0], 1.0)
    np.testing.assert_allclose(without[0], 1 / 8)
    assert read(settings_of("gemma") | {"hidden_act": "gelu"}).hidden_act == "gelu_pytorch_tanh", "an old name too"
    raw = settings_of("gemma3") | {"use_bidirectional_attention": True, "sliding_window": 8}
    first, second = (layer.attention for layer in layers_of(raw))
    assert (first.causal, first.window, second.causal, second.window) == (False, 5, False, None)


def parallel_of(name, **changes):
    return layers_of(settings_of(name) | changes)[0].parallel


def test_heads_and_sublayers_are_as_the_file_says():
    for name in ("stablelm", "cohere"):
        raw = settings_of(name) | {"qk_layernorm": True, "use_qk_norm": True}
        program = read(raw).program(Lengths(3))
        assert [name for name in program.weights if "0.self_attention.key_norm" in name] == [
            f"decoder.0.self_attention.key_norm.{head}.weight" for head in range(2)
        ]
        assert isinstance(program.step("decoder.0.self_attention.query_norm").op, LayerNormByHead)
    assert parallel_of("falcon") == "one norm"
    assert parallel_of("falcon", parallel_attn=False) == ""
    assert parallel_of("falcon", new_decoder_architecture=True) == "two norms"
    assert parallel_of("falcon", new_decoder_architecture=True, num_ln_in_parallel_attn=1) == "one norm"
    assert (parallel_of("stablelm"), parallel_of("stablelm", use_parallel_residual=True)) == ("", "one norm")
    assert [read(settings_of("cohere2") | {"head_dim": width}).head_width for width in (6, 8, None)] == [6, 8, 4]
    # projections
    raw = settings_of("opt") | {"word_embed_proj_dim": 16, "do_layer_norm_before": False}
    program = read(raw).program(Lengths(3))
    names = [step.name for step in program.steps]
    assert names[:4] == ["tokens", "embedding.tokens", "embedding.projected", "embedding.positions"]
    assert program.shape("embedding.tokens") == (3, 16)
    assert program.shape("decoder.projected") == (3, 16)
    assert "decoder.norm" not in names
    # biases
    raw = {key: value for key, value in settings_of("llama").items() if not key.endswith("_bias")}
    attention, others = ("query", "key", "value"), ("output", "hidden", "gate")
    for qkv, bias, named in (
        (True, True, {*attention, *others}),
        (True, False, {*attention}),
        (False, True, {*others}),
    ):
        weights = read(raw | {"model_type": "internlm3", "qkv_bias": qkv, "bias": bias}).program(Lengths(3)).weights
        biased = {name.split(".")[-2] for name in weights if name.endswith(".bias")}
        assert (biased, "decoder.0.self_attention.output.bias" in weights) == (named, bias)
