"""Random configurations of encoders, and of encoders with decoders."""

from __future__ import annotations

import random

from random_drawing import ACTIVATIONS, EITHER, Raw, both, encoder, layer_types, renamed, some, with_rope


def distilbert(draw: random.Random) -> Raw:
    raw = encoder(draw, sinusoidal_pos_embds=EITHER)
    for key in ("layer_norm_eps", "type_vocab_size"):
        raw.pop(key, None)
    names = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
    return renamed(raw, **names, intermediate_size="hidden_dim", hidden_act="activation")


def roberta(draw: random.Random) -> Raw:
    return encoder(draw) | {"pad_token_id": draw.choice((0, 1))}


def albert(draw: random.Random) -> Raw:
    raw = encoder(draw, inner_group_num=(1, 2), num_hidden_groups=(1, 2)) | {"embedding_size": draw.choice((4, 6))}
    raw["num_hidden_layers"] = 2 * draw.randint(1, 2)
    return raw


def mpnet(draw: random.Random) -> Raw:
    raw = encoder(draw, relative_attention_num_buckets=(8, 32)) | {"pad_token_id": 1}
    raw.pop("type_vocab_size", None)
    return raw


def modernbert(draw: random.Random) -> Raw:
    raw = encoder(draw, norm_bias=EITHER, attention_bias=EITHER, mlp_bias=EITHER, decoder_bias=EITHER)
    raw["hidden_size"] = raw["num_attention_heads"] * draw.choice((4, 6))
    raw |= {f"{name}_token_id": i for i, name in enumerate(("pad", "bos", "eos"))} | {
        "local_attention": 2 * draw.randint(1, 3)
    }
    for key in ("type_vocab_size", "layer_norm_eps"):
        raw.pop(key, None)
    raw |= some(draw, {"classifier_pooling": ("cls", "mean"), "classifier_bias": EITHER, "norm_eps": (1e-3,)})
    raw |= some(draw, {"classifier_activation": ACTIVATIONS})
    return layer_types(draw, renamed(raw, hidden_act="hidden_activation"))


def deberta(draw: random.Random) -> Raw:
    raw = encoder(draw, position_biased_input=EITHER, relative_attention=EITHER, pooler_hidden_act=ACTIVATIONS)
    raw |= {"type_vocab_size": draw.choice((0, 2)), "pooler_hidden_size": raw["hidden_size"]}
    more = {"pos_att_type": (["c2p"], ["p2c"], ["c2p", "p2c"], "c2p|p2c", []), "position_buckets": (-1, 4, 8)}
    more |= {"share_att_key": EITHER, "norm_rel_ebd": ("layer_norm", "none"), "max_relative_positions": (-1, 9)}
    return raw | some(draw, more)


def electra(draw: random.Random) -> Raw:
    return encoder(draw, embedding_size=(4, 6, 8))


def nomic_bert(draw: random.Random) -> Raw:
    raw = encoder(draw) | {"pad_token_id": 0}
    raw["hidden_size"] = raw["num_attention_heads"] * draw.choice((4, 6))
    return with_rope(draw, raw)


def marian(draw: random.Random) -> Raw:
    raw = both(draw)
    if draw.random() < 0.5:
        raw |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": draw.randint(20, 60)}
    return raw


def t5(draw: random.Random) -> Raw:
    raw: Raw = {
        "vocab_size": draw.randint(20, 60),
        "d_model": draw.randint(4, 16),
        "d_kv": draw.randint(2, 8),
        "d_ff": draw.randint(3, 20),
        "num_layers": draw.randint(1, 3),
        "num_heads": draw.randint(1, 4),
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
    }
    kinds = ("relu", "gated-gelu", "gated-silu", "gelu")
    options = {"num_decoder_layers": (1, 2), "relative_attention_num_buckets": (8, 16), "feed_forward_proj": kinds}
    options |= {"relative_attention_max_distance": (20, 128), "layer_norm_epsilon": (1e-3,)}
    return raw | some(draw, options | {"tie_word_embeddings": EITHER})
