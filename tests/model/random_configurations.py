"""Random sizes and options of checkpoints of every family: a part of random_sizes.py."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Raw = dict[str, Any]
ACTIVATIONS = ("relu", "gelu", "gelu_new", "gelu_pytorch_tanh", "silu", "quick_gelu", "tanh")
EITHER = (True, False)
LABELS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def some(draw: random.Random, options: Raw) -> Raw:
    """About half of the options, each with one of its values."""
    return {key: draw.choice(values) for key, values in options.items() if draw.random() < 0.5}


def rope(draw: random.Random, context: int, kinds: Sequence[str], pairs: int, theta: float = 10000.0) -> Raw:
    """Settings of rotary positions."""
    kind = draw.choice(kinds)
    settings: Raw = {"rope_type": kind, "rope_theta": draw.choice((theta, 100.0, 5e5))}
    before = {"original_max_position_embeddings": max(4, context // 2)}
    if kind in ("linear", "dynamic"):
        settings |= {"factor": draw.choice((1.0, 2.0, 3.5))}
    elif kind == "yarn":
        more = {"attention_factor": (1.3,), "beta_fast": (16.0,), "beta_slow": (2.0,), "truncate": EITHER}
        settings |= {"factor": draw.choice((2.0, 4.0)), **before, **some(draw, more)}
        if draw.random() < 0.3:
            settings |= {"mscale": 0.7, "mscale_all_dim": 0.9}
    elif kind == "llama3":
        settings |= {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **before}
    elif kind == "longrope":
        factors = {key: [1 + draw.random() * 2 for _ in range(pairs)] for key in ("short_factor", "long_factor")}
        settings |= {**factors, **before, **some(draw, {"factor": (2.0,), "attention_factor": (1.2,)})}
    return settings


ROPES = ("default", "default", "linear", "dynamic", "yarn", "llama3", "longrope")


def rotary(draw: random.Random, *, own_width: bool = True, grouped: bool = True) -> Raw:
    """Sizes and rotary positions of a decoder like Llama."""
    heads, width = draw.choice((1, 2, 4, 6)), draw.choice((4, 6, 8, 10))
    groups = [count for count in (1, 2, 3, heads) if heads % count == 0]
    hidden = heads * (width if not own_width or draw.random() < 0.5 else 2 * draw.randint(2, 5))
    settings: Raw = {
        "vocab_size": draw.randint(20, 60),
        "hidden_size": hidden,
        "intermediate_size": draw.randint(3, 24),
        "num_hidden_layers": draw.randint(1, 4),
        "num_attention_heads": heads,
        "max_position_embeddings": draw.choice((8, 16, 64)),
        **some(draw, {"tie_word_embeddings": EITHER}),
    }
    if grouped:
        settings["num_key_value_heads"] = draw.choice(groups)
    if own_width:
        settings["head_dim"] = width
    return settings


def with_rope(draw: random.Random, raw: Raw, kinds: Sequence[str] = ROPES, part: float | None = None) -> Raw:
    """The same with settings of rotary positions, sometimes."""
    width = int((raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]) * (part or 1.0))
    if part is not None or draw.random() < 0.7:
        settings = rope(draw, raw["max_position_embeddings"], kinds, width // 2)
        raw["rope_parameters"] = settings | ({} if part is None else {"partial_rotary_factor": part})
    return raw


def llama(draw: random.Random, **options: Any) -> Raw:
    """Sizes of a relative of Llama, with some of these options."""
    common = {"hidden_act": ACTIVATIONS, "rms_norm_eps": (1e-5, 1e-3)}
    return with_rope(draw, rotary(draw)) | some(draw, common | options)


def layer_types(draw: random.Random, raw: Raw, kinds: Sequence[str] = ("full_attention", "sliding_attention")) -> Raw:
    """The same with a kind for every layer, sometimes."""
    if draw.random() < 0.6:
        raw["layer_types"] = [draw.choice(kinds) for _ in range(raw["num_hidden_layers"])]
    return raw


def sizes_of(draw: random.Random, more: dict[str, tuple[int, int]]) -> Raw:
    """Sizes of a stack, with more that lie between bounds."""
    heads = draw.choice((1, 2, 3, 4))
    return {
        "vocab_size": draw.randint(20, 60),
        "hidden_size": heads * draw.choice((2, 4, 5, 8)),
        "num_hidden_layers": draw.randint(1, 4),
        "num_attention_heads": heads,
        **{key: draw.randint(*bounds) for key, bounds in more.items()},
        "max_position_embeddings": draw.choice((20, 40)),
    }


def encoder(draw: random.Random, **options: Any) -> Raw:
    """Sizes of an encoder like BERT."""
    sizes = sizes_of(draw, {"intermediate_size": (3, 24)})
    common = {"hidden_act": ACTIVATIONS, "layer_norm_eps": (1e-5, 1e-2), "type_vocab_size": (1, 2, 3)}
    return sizes | some(draw, common | {"tie_word_embeddings": EITHER} | options)


def both(draw: random.Random, **options: Any) -> Raw:
    """Sizes of an encoder and a decoder like BART."""
    heads = [draw.choice((1, 2, 4)) for _ in range(2)]
    sizes: Raw = {
        "vocab_size": draw.randint(20, 60),
        "d_model": 4 * draw.choice((2, 3, 4)),
        "max_position_embeddings": draw.choice((16, 32)),
        "pad_token_id": draw.choice((0, 1)),
        "decoder_start_token_id": draw.choice((0, 2)),
    }
    for stack, count in zip(("encoder", "decoder"), heads, strict=True):
        sizes |= {f"{stack}_attention_heads": count, f"{stack}_layers": draw.randint(1, 3)}
        sizes[f"{stack}_ffn_dim"] = draw.randint(3, 20)
    common = {"activation_function": ACTIVATIONS, "scale_embedding": EITHER, "tie_word_embeddings": EITHER}
    return sizes | some(draw, common | options)


def plain(draw: random.Random, **options: Any) -> Raw:
    """Sizes of a decoder like GPT-2."""
    return sizes_of(draw, {}) | some(
        draw, {"activation_function": ACTIVATIONS, "tie_word_embeddings": EITHER} | options
    )


def renamed(raw: Raw, **names: str) -> Raw:
    """The same under other keys."""
    return {names.get(key, key): value for key, value in raw.items()}


def experts(draw: random.Random, count: str, each: str = "num_experts_per_tok") -> Raw:
    experts = draw.randint(2, 5)
    return {count: experts, each: draw.randint(1, experts)}


# Decoders


def gpt2(draw: random.Random) -> Raw:
    scaled = ("scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn")
    return gpt_bigcode(draw, **dict.fromkeys(scaled, EITHER))


def gpt_neo(draw: random.Random) -> Raw:
    raw = plain(draw, intermediate_size=(5, 16, None), layer_norm_epsilon=(1e-3,), window_size=(1, 3, 7))
    layers = raw["num_hidden_layers"]
    raw["attention_types"] = [[[draw.choice(("global", "local"))], 1] for _ in range(layers)]
    return renamed(raw, num_hidden_layers="num_layers", num_attention_heads="num_heads")


def gpt_neox(draw: random.Random) -> Raw:
    raw = in_part(draw, rotary(draw, own_width=False, grouped=False))
    options = {"use_parallel_residual": EITHER, "attention_bias": EITHER, "layer_norm_eps": (1e-3,)}
    return raw | some(draw, options | {"hidden_act": ACTIVATIONS})


def in_part(draw: random.Random, raw: Raw) -> Raw:
    """The same with positions that turn half of a head, where that is pairs of columns, or all of it."""
    part, width = draw.choice((0.5, 1.0)), raw["hidden_size"] // raw["num_attention_heads"]
    return with_rope(draw, raw, part=part if int(width * part) % 2 == 0 and int(width * part) else 1.0)


def falcon(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False, grouped=False), ("default", "linear"))
    heads = raw["num_attention_heads"]
    new = draw.random() < 0.4
    options: Raw = {"bias": EITHER, "activation": ACTIVATIONS, "ffn_hidden_size": (7, 16)}
    options["layer_norm_epsilon"] = (1e-3,)
    if new:
        raw |= {"new_decoder_architecture": True, "num_kv_heads": draw.choice([1, heads])}
        options["num_ln_in_parallel_attn"] = (1, 2)
    else:
        options |= {"multi_query": EITHER, "parallel_attn": EITHER, "alibi": EITHER}
    raw.pop("intermediate_size")
    return raw | some(draw, options)


def bloom(draw: random.Random) -> Raw:
    options = {"layer_norm_epsilon": (1e-3,), "apply_residual_connection_post_layernorm": EITHER}
    raw = plain(draw, **options)
    raw.pop("activation_function", None)
    raw.pop("max_position_embeddings")
    return renamed(raw, num_hidden_layers="n_layer", num_attention_heads="n_head")


def opt(draw: random.Random) -> Raw:
    raw = plain(draw, do_layer_norm_before=EITHER, enable_bias=EITHER, _remove_final_layer_norm=EITHER)
    raw |= {"ffn_dim": draw.randint(3, 20), "pad_token_id": 1}
    return raw | some(draw, {"word_embed_proj_dim": (4, 6, raw["hidden_size"])})


def partly(draw: random.Random, **options: Any) -> Raw:
    more = {"layer_norm_eps": (1e-3,), "hidden_act": ACTIVATIONS}
    return in_part(draw, rotary(draw, own_width=False)) | some(draw, more | options)


def phi3(draw: random.Random) -> Raw:
    raw = rotary(draw, own_width=False)
    raw |= {"pad_token_id": None, "original_max_position_embeddings": max(4, raw["max_position_embeddings"] // 2)}
    raw = with_rope(draw, raw, ("default", "longrope"))
    return raw | some(draw, {"hidden_act": ACTIVATIONS, "rms_norm_eps": (1e-3,), "sliding_window": (2, 5, None)})


def starcoder2(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False))
    options = {"use_bias": EITHER, "norm_epsilon": (1e-3,), "sliding_window": (2, 5, None), "hidden_act": ACTIVATIONS}
    return raw | some(draw, options)


def gemma2(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw)) | {"sliding_window": draw.choice((2, 5))}
    caps = {"attn_logit_softcapping": (2.0, None), "final_logit_softcapping": (3.0, None)}
    options = {"query_pre_attn_scalar": (7, 16), "hidden_activation": ACTIVATIONS, "rms_norm_eps": (1e-3,)}
    return layer_types(draw, raw | some(draw, caps | options | {"attention_bias": EITHER}))


def rope_by_kind(draw: random.Random, raw: Raw) -> Raw:
    """The same with rotary positions for each kind of layer, sometimes."""
    raw.pop("rope_parameters", None)
    if draw.random() < 0.7:
        width = raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]
        local = {"rope_type": "default", "rope_theta": draw.choice((1000.0, 50.0))}
        full = rope(draw, raw["max_position_embeddings"], ROPES, width // 2)
        raw["rope_parameters"] = {"full_attention": full, "sliding_attention": local}
    return raw


def gemma3(draw: random.Random) -> Raw:
    raw = gemma2(draw)
    raw.pop("attn_logit_softcapping", None)
    return rope_by_kind(draw, raw)


def smollm3(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False)) | {"pad_token_id": None}
    raw |= some(draw, {"attention_bias": EITHER, "mlp_bias": EITHER, "no_rope_layer_interval": (2, 3)})
    if draw.random() < 0.5:
        raw["no_rope_layers"] = [draw.choice((0, 1)) for _ in range(raw["num_hidden_layers"])]
    if draw.random() < 0.5:
        raw |= {"use_sliding_window": True, "sliding_window": draw.choice((2, 5))}
    return raw


def windowed(draw: random.Random, **options: Any) -> Raw:
    raw = llama(draw, **options)
    if draw.random() < 0.6:
        window = {"use_sliding_window": True, "sliding_window": draw.choice((2, 5))}
        raw |= window | {"max_window_layers": draw.randint(0, raw["num_hidden_layers"])}
    return raw


def cohere(draw: random.Random, **options: Any) -> Raw:
    raw = rotary(draw, own_width=False) | {"pad_token_id": 0}
    common = {"logit_scale": (0.25, 1.0), "attention_bias": EITHER, "layer_norm_eps": (1e-3,)}
    return with_rope(draw, raw) | some(draw, common | {"hidden_act": ACTIVATIONS} | options)


def cohere2(draw: random.Random) -> Raw:
    return layer_types(draw, cohere(draw) | {"sliding_window": draw.choice((2, 5))})


def granite(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False))
    multipliers = ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier")
    options = dict.fromkeys(multipliers, (0.5, 2.0, 3.0)) | dict.fromkeys(("attention_bias", "mlp_bias"), EITHER)
    return raw | some(draw, options)


def olmo(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False)) | {"pad_token_id": 1}
    return raw | some(draw, {"attention_bias": EITHER, "rms_norm_eps": (1e-3,), "hidden_act": ACTIVATIONS})


def olmo3(draw: random.Random) -> Raw:
    return rope_by_kind(draw, layer_types(draw, olmo(draw) | {"sliding_window": draw.choice((2, 5))}))


def olmoe(draw: random.Random) -> Raw:
    return olmo(draw) | experts(draw, "num_experts") | some(draw, {"norm_topk_prob": EITHER, "clip_qkv": (None, 0.7)})


def mixtral(draw: random.Random) -> Raw:
    return llama(draw, sliding_window=(2, 5, None)) | experts(draw, "num_local_experts")


def qwen2_moe(draw: random.Random) -> Raw:
    raw = windowed(draw, norm_topk_prob=EITHER, decoder_sparse_step=(1, 2), qkv_bias=EITHER)
    raw.pop("head_dim")
    raw["hidden_size"] = raw["num_attention_heads"] * draw.choice((4, 6))
    raw.pop("rope_parameters", None)
    raw |= {"moe_intermediate_size": draw.randint(3, 9), "shared_expert_intermediate_size": draw.randint(3, 9)}
    raw |= some(draw, {"mlp_only_layers": ([], [0])})
    return with_rope(draw, raw) | experts(draw, "num_experts")


def qwen3_moe(draw: random.Random) -> Raw:
    raw = windowed(draw, norm_topk_prob=EITHER, decoder_sparse_step=(1, 2), attention_bias=EITHER)
    raw |= {"moe_intermediate_size": draw.randint(3, 9)} | some(draw, {"mlp_only_layers": ([], [0])})
    return raw | experts(draw, "num_experts")


def gpt_oss(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw)) | {"sliding_window": draw.choice((2, 5))}
    clamped = {"swiglu_limit": (0.5,), "swiglu_alpha": (1.0,)}
    raw |= some(draw, {"attention_bias": EITHER, "rms_norm_eps": (1e-3,)} | clamped)
    return layer_types(draw, raw) | experts(draw, "num_local_experts")


def exaone4(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False))
    options = {"sliding_window": (2, 5, None), "sliding_window_pattern": (2, "LG", "LLG")}
    return layer_types(draw, raw | some(draw, options | {"hidden_act": ACTIVATIONS}))


def ministral(draw: random.Random) -> Raw:
    return layer_types(draw, llama(draw) | {"sliding_window": draw.choice((2, 5))})


def relu2(draw: random.Random) -> Raw:
    return some(draw, {"hidden_act": ("relu2",)})


def nemotron(draw: random.Random) -> Raw:
    raw = partly(draw, norm_eps=(1e-3,), attention_bias=EITHER, mlp_bias=EITHER)
    raw.pop("layer_norm_eps", None)
    return raw | relu2(draw)


def glm(draw: random.Random) -> Raw:
    raw = rotary(draw) | {"pad_token_id": 0, "head_dim": draw.choice((4, 8))}
    return with_rope(draw, raw, part=0.5) | some(draw, {"attention_bias": EITHER, "rms_norm_eps": (1e-3,)})


def cwm(draw: random.Random) -> Raw:
    raw = rotary(draw)
    raw = with_rope(draw, raw) | {"sliding_window": draw.choice((2, 5))} | some(draw, {"mlp_bias": EITHER})
    return layer_types(draw, raw)


def gpt_bigcode(draw: random.Random, **options: Any) -> Raw:
    raw = plain(draw, n_inner=(5, 16, None), layer_norm_epsilon=(1e-3,), **options)
    names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    return renamed(raw, **names, max_position_embeddings="n_positions")


def gptj(draw: random.Random) -> Raw:
    raw = gpt_bigcode(draw)
    raw["n_embd"] = raw["n_head"] * draw.choice((4, 8))
    return raw | {"rotary_dim": draw.choice((2, 4))}
