"""Random sizes and options of checkpoints: a part of `random_sizes.py`."""

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


def encoder(draw: random.Random, **options: Any) -> Raw:
    """Sizes of an encoder like BERT."""
    heads = draw.choice((1, 2, 3, 4))
    sizes: Raw = {
        "vocab_size": draw.randint(20, 60),
        "hidden_size": heads * draw.choice((2, 4, 5, 8)),
        "num_hidden_layers": draw.randint(1, 4),
        "num_attention_heads": heads,
        "intermediate_size": draw.randint(3, 24),
        "max_position_embeddings": draw.choice((20, 40)),
    }
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
        sizes |= {
            f"{stack}_attention_heads": count,
            f"{stack}_layers": draw.randint(1, 3),
            f"{stack}_ffn_dim": draw.randint(3, 20),
        }
    common = {"activation_function": ACTIVATIONS, "scale_embedding": EITHER, "tie_word_embeddings": EITHER}
    return sizes | some(draw, common | options)


def plain(draw: random.Random, **options: Any) -> Raw:
    """Sizes of a decoder like GPT-2."""
    heads = draw.choice((1, 2, 3, 4))
    sizes: Raw = {
        "vocab_size": draw.randint(20, 60),
        "hidden_size": heads * draw.choice((2, 4, 5, 8)),
        "num_hidden_layers": draw.randint(1, 4),
        "num_attention_heads": heads,
        "max_position_embeddings": draw.choice((20, 40)),
    }
    return sizes | some(draw, {"activation_function": ACTIVATIONS, "tie_word_embeddings": EITHER} | options)


def renamed(raw: Raw, **names: str) -> Raw:
    """The same under other keys."""
    return {names.get(key, key): value for key, value in raw.items()}


def experts(draw: random.Random, count: str, each: str = "num_experts_per_tok") -> Raw:
    experts = draw.randint(2, 5)
    return {count: experts, each: draw.randint(1, experts)}
