"""Random configurations of every family, with what both sides read: a part of `random_sizes.py`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from random_drawing import (
    ACTIVATIONS,
    EITHER,
    LABELS,
    ROPES,
    Raw,
    both,
    encoder,
    experts,
    layer_types,
    llama,
    plain,
    renamed,
    rope,
    rotary,
    some,
    with_rope,
)


@dataclass(frozen=True)
class Case:
    """A checkpoint that is to be compared.

    Attributes:
        name: Of the class in transformers.
        raw: `config.json`.
        inputs: What both read.
        labels: The logits are of labels.
    """

    name: str
    raw: Raw
    inputs: dict[str, np.ndarray[Any, Any]]

    @property
    def family(self) -> str:
        """The model type."""
        return str(self.raw["model_type"])

    def __str__(self) -> str:
        return f"{self.name} {json.dumps(self.raw)} { ({name: ids.tolist() for name, ids in self.inputs.items()}) }"


# Families


def _gpt2(draw: random.Random) -> Raw:
    scaled = {
        "scale_attn_weights": EITHER,
        "scale_attn_by_inverse_layer_idx": EITHER,
        "reorder_and_upcast_attn": EITHER,
    }
    raw = plain(draw, n_inner=(5, 16, None), layer_norm_epsilon=(1e-3,), **scaled)
    names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    return renamed(raw, **names, max_position_embeddings="n_positions")


def _gpt_neo(draw: random.Random) -> Raw:
    raw = plain(draw, intermediate_size=(5, 16, None), layer_norm_epsilon=(1e-3,), window_size=(1, 3, 7))
    layers = raw["num_hidden_layers"]
    raw["attention_types"] = [[[draw.choice(("global", "local"))], 1] for _ in range(layers)]
    return renamed(raw, num_hidden_layers="num_layers", num_attention_heads="num_heads")


def _gpt_neox(draw: random.Random) -> Raw:
    raw, part = rotary(draw, own_width=False, grouped=False), draw.choice((0.5, 1.0))
    options = {"use_parallel_residual": EITHER, "attention_bias": EITHER, "layer_norm_eps": (1e-3,)}
    width = raw["hidden_size"] // raw["num_attention_heads"]
    part = part if int(width * part) % 2 == 0 and int(width * part) else 1.0
    settings = with_rope(draw, raw, part=part)
    return settings | some(draw, options | {"hidden_act": ACTIVATIONS})


def _falcon(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False, grouped=False), ("default", "linear"))
    heads = raw["num_attention_heads"]
    new = draw.random() < 0.4
    options: Raw = {
        "bias": EITHER,
        "activation": ACTIVATIONS,
        "ffn_hidden_size": (7, 16),
        "layer_norm_epsilon": (1e-3,),
    }
    if new:
        raw |= {"new_decoder_architecture": True, "num_kv_heads": draw.choice([1, heads])}
        options["num_ln_in_parallel_attn"] = (1, 2)
    else:
        options |= {"multi_query": EITHER, "parallel_attn": EITHER, "alibi": EITHER}
    raw.pop("intermediate_size")
    return raw | some(draw, options)


def _bloom(draw: random.Random) -> Raw:
    options = {"layer_norm_epsilon": (1e-3,), "apply_residual_connection_post_layernorm": EITHER}
    raw = plain(draw, **options)
    raw.pop("activation_function", None)
    raw.pop("max_position_embeddings")
    return renamed(raw, num_hidden_layers="n_layer", num_attention_heads="n_head")


def _opt(draw: random.Random) -> Raw:
    raw = plain(draw, do_layer_norm_before=EITHER, enable_bias=EITHER, _remove_final_layer_norm=EITHER)
    raw |= {"ffn_dim": draw.randint(3, 20), "pad_token_id": 1}
    return raw | some(draw, {"word_embed_proj_dim": (4, 6, raw["hidden_size"])})


def _partly(draw: random.Random, **options: Any) -> Raw:
    raw, part = rotary(draw, own_width=False), draw.choice((0.5, 1.0))
    width = raw["hidden_size"] // raw["num_attention_heads"]
    part = part if int(width * part) % 2 == 0 and int(width * part) else 1.0
    return with_rope(draw, raw, part=part) | some(
        draw, {"layer_norm_eps": (1e-3,), "hidden_act": ACTIVATIONS} | options
    )


def _phi3(draw: random.Random) -> Raw:
    raw = rotary(draw, own_width=False)
    raw |= {"pad_token_id": None, "original_max_position_embeddings": max(4, raw["max_position_embeddings"] // 2)}
    raw = with_rope(draw, raw, ("default", "longrope"))
    return raw | some(draw, {"hidden_act": ACTIVATIONS, "rms_norm_eps": (1e-3,), "sliding_window": (2, 5, None)})


def _starcoder2(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False))
    options = {"use_bias": EITHER, "norm_epsilon": (1e-3,), "sliding_window": (2, 5, None), "hidden_act": ACTIVATIONS}
    return raw | some(draw, options)


def _gemma2(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw)) | {"sliding_window": draw.choice((2, 5))}
    caps = {"attn_logit_softcapping": (2.0, None), "final_logit_softcapping": (3.0, None)}
    options = {"query_pre_attn_scalar": (7, 16), "hidden_activation": ACTIVATIONS, "rms_norm_eps": (1e-3,)}
    return layer_types(draw, raw | some(draw, caps | options | {"attention_bias": EITHER}))


def _rope_by_kind(draw: random.Random, raw: Raw) -> Raw:
    """The same with rotary positions for each kind of layer, sometimes."""
    raw.pop("rope_parameters", None)
    if draw.random() < 0.7:
        width = raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]
        local = {"rope_type": "default", "rope_theta": draw.choice((1000.0, 50.0))}
        full = rope(draw, raw["max_position_embeddings"], ROPES, width // 2)
        raw["rope_parameters"] = {"full_attention": full, "sliding_attention": local}
    return raw


def _gemma3(draw: random.Random) -> Raw:
    raw = _gemma2(draw)
    raw.pop("attn_logit_softcapping", None)
    return _rope_by_kind(draw, raw)


def _smollm3(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False)) | {"pad_token_id": None}
    raw |= some(draw, {"attention_bias": EITHER, "mlp_bias": EITHER, "no_rope_layer_interval": (2, 3)})
    if draw.random() < 0.5:
        raw["no_rope_layers"] = [draw.choice((0, 1)) for _ in range(raw["num_hidden_layers"])]
    if draw.random() < 0.5:
        raw |= {"use_sliding_window": True, "sliding_window": draw.choice((2, 5))}
    return raw


def _windowed(draw: random.Random, **options: Any) -> Raw:
    raw = llama(draw, **options)
    if draw.random() < 0.6:
        window = {"use_sliding_window": True, "sliding_window": draw.choice((2, 5))}
        raw |= window | {"max_window_layers": draw.randint(0, raw["num_hidden_layers"])}
    return raw


def _cohere(draw: random.Random, **options: Any) -> Raw:
    raw = rotary(draw, own_width=False) | {"pad_token_id": 0}
    common = {
        "logit_scale": (0.25, 1.0),
        "attention_bias": EITHER,
        "layer_norm_eps": (1e-3,),
        "hidden_act": ACTIVATIONS,
    }
    return with_rope(draw, raw) | some(draw, common | options)


def _cohere2(draw: random.Random) -> Raw:
    return layer_types(draw, _cohere(draw) | {"sliding_window": draw.choice((2, 5))})


def _granite(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False))
    multipliers = ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier")
    options = dict.fromkeys(multipliers, (0.5, 2.0, 3.0)) | dict.fromkeys(("attention_bias", "mlp_bias"), EITHER)
    return raw | some(draw, options)


def _olmo(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False)) | {"pad_token_id": 1}
    return raw | some(draw, {"attention_bias": EITHER, "rms_norm_eps": (1e-3,), "hidden_act": ACTIVATIONS})


def _olmo3(draw: random.Random) -> Raw:
    return _rope_by_kind(draw, layer_types(draw, _olmo(draw) | {"sliding_window": draw.choice((2, 5))}))


def _olmoe(draw: random.Random) -> Raw:
    return _olmo(draw) | experts(draw, "num_experts") | some(draw, {"norm_topk_prob": EITHER, "clip_qkv": (None, 0.7)})


def _mixtral(draw: random.Random) -> Raw:
    return llama(draw, sliding_window=(2, 5, None)) | experts(draw, "num_local_experts")


def _qwen2_moe(draw: random.Random) -> Raw:
    raw = _windowed(draw, norm_topk_prob=EITHER, decoder_sparse_step=(1, 2), qkv_bias=EITHER)
    raw.pop("head_dim")
    raw["hidden_size"] = raw["num_attention_heads"] * draw.choice((4, 6))
    raw.pop("rope_parameters", None)
    raw |= {"moe_intermediate_size": draw.randint(3, 9), "shared_expert_intermediate_size": draw.randint(3, 9)}
    raw |= some(draw, {"mlp_only_layers": ([], [0])})
    return with_rope(draw, raw) | experts(draw, "num_experts")


def _qwen3_moe(draw: random.Random) -> Raw:
    raw = _windowed(draw, norm_topk_prob=EITHER, decoder_sparse_step=(1, 2), attention_bias=EITHER)
    raw |= {"moe_intermediate_size": draw.randint(3, 9)} | some(draw, {"mlp_only_layers": ([], [0])})
    return raw | experts(draw, "num_experts")


def _gpt_oss(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw)) | {"sliding_window": draw.choice((2, 5))}
    raw |= some(
        draw, {"attention_bias": EITHER, "rms_norm_eps": (1e-3,), "swiglu_limit": (0.5,), "swiglu_alpha": (1.0,)}
    )
    return layer_types(draw, raw) | experts(draw, "num_local_experts")


def _exaone4(draw: random.Random) -> Raw:
    raw = with_rope(draw, rotary(draw, own_width=False))
    options = {"sliding_window": (2, 5, None), "sliding_window_pattern": (2, "LG", "LLG")}
    return layer_types(draw, raw | some(draw, options | {"hidden_act": ACTIVATIONS}))


def _ministral(draw: random.Random) -> Raw:
    return layer_types(draw, llama(draw) | {"sliding_window": draw.choice((2, 5))})


def _distilbert(draw: random.Random) -> Raw:
    raw = encoder(draw, sinusoidal_pos_embds=EITHER)
    for key in ("layer_norm_eps", "type_vocab_size"):
        raw.pop(key, None)
    names = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
    return renamed(raw, **names, intermediate_size="hidden_dim", hidden_act="activation")


def _roberta(draw: random.Random) -> Raw:
    return encoder(draw) | {"pad_token_id": draw.choice((0, 1))}


def _albert(draw: random.Random) -> Raw:
    raw = encoder(draw, inner_group_num=(1, 2), num_hidden_groups=(1, 2)) | {"embedding_size": draw.choice((4, 6))}
    raw["num_hidden_layers"] = 2 * draw.randint(1, 2)
    return raw


def _mpnet(draw: random.Random) -> Raw:
    raw = encoder(draw, relative_attention_num_buckets=(8, 32)) | {"pad_token_id": 1}
    raw.pop("type_vocab_size", None)
    return raw


def _modernbert(draw: random.Random) -> Raw:
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


def _deberta(draw: random.Random) -> Raw:
    raw = encoder(draw, position_biased_input=EITHER, relative_attention=EITHER, pooler_hidden_act=ACTIVATIONS)
    raw |= {"type_vocab_size": draw.choice((0, 2)), "pooler_hidden_size": raw["hidden_size"]}
    more = {"pos_att_type": (["c2p"], ["p2c"], ["c2p", "p2c"], "c2p|p2c", []), "position_buckets": (-1, 4, 8)}
    more |= {"share_att_key": EITHER, "norm_rel_ebd": ("layer_norm", "none"), "max_relative_positions": (-1, 9)}
    return raw | some(draw, more)


def _electra(draw: random.Random) -> Raw:
    return encoder(draw, embedding_size=(4, 6, 8))


def _marian(draw: random.Random) -> Raw:
    raw = both(draw)
    if draw.random() < 0.5:
        raw |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": draw.randint(20, 60)}
    return raw


def _t5(draw: random.Random) -> Raw:
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


def _relu2(draw: random.Random) -> Raw:
    return some(draw, {"hidden_act": ("relu2",)})


def _nemotron(draw: random.Random) -> Raw:
    raw = _partly(draw, norm_eps=(1e-3,), attention_bias=EITHER, mlp_bias=EITHER)
    raw.pop("layer_norm_eps", None)
    return raw | _relu2(draw)


def _glm(draw: random.Random) -> Raw:
    raw = rotary(draw) | {"pad_token_id": 0, "head_dim": draw.choice((4, 8))}
    return with_rope(draw, raw, part=0.5) | some(draw, {"attention_bias": EITHER, "rms_norm_eps": (1e-3,)})


def _cwm(draw: random.Random) -> Raw:
    raw = rotary(draw)
    raw = with_rope(draw, raw) | {"sliding_window": draw.choice((2, 5))} | some(draw, {"mlp_bias": EITHER})
    return layer_types(draw, raw)


def _gpt_bigcode(draw: random.Random) -> Raw:
    raw = plain(draw, n_inner=(5, 16, None), layer_norm_epsilon=(1e-3,))
    names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    return renamed(raw, **names, max_position_embeddings="n_positions")


def _gptj(draw: random.Random) -> Raw:
    raw = _gpt_bigcode(draw)
    raw["n_embd"] = raw["n_head"] * draw.choice((4, 8))
    return raw | {"rotary_dim": draw.choice((2, 4))}


def _nomic_bert(draw: random.Random) -> Raw:
    raw = encoder(draw) | {"pad_token_id": 0}
    raw["hidden_size"] = raw["num_attention_heads"] * draw.choice((4, 6))
    return with_rope(draw, raw)


OF_BERT = ("ForMaskedLM", "Model", *LABELS)
OF_LLAMA = ("ForCausalLM", "ForCausalLM", "Model", *LABELS)
FAMILIES: dict[str, tuple[str, Sequence[str], Any]] = {
    "bert": ("Bert", OF_BERT, encoder),
    "distilbert": ("DistilBert", OF_BERT, _distilbert),
    "roberta": ("Roberta", OF_BERT, _roberta),
    "xlm-roberta": ("XLMRoberta", OF_BERT, _roberta),
    "camembert": ("Camembert", OF_BERT, _roberta),
    "data2vec-text": ("Data2VecText", OF_BERT, _roberta),
    "electra": ("Electra", (*OF_BERT, "ForPreTraining"), _electra),
    "albert": ("Albert", OF_BERT, _albert),
    "mpnet": ("MPNet", OF_BERT, _mpnet),
    "modernbert": ("ModernBert", OF_BERT, _modernbert),
    "deberta-v2": ("DebertaV2", OF_BERT, _deberta),
    "bart": ("Bart", ("ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering"), both),
    "mbart": ("MBart", ("ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering"), both),
    "marian": ("Marian", ("MTModel",), _marian),
    "m2m_100": ("M2M100", ("ForConditionalGeneration",), both),
    "pegasus": ("Pegasus", ("ForConditionalGeneration",), both),
    "t5": ("T5", ("ForConditionalGeneration", "EncoderModel", *LABELS), _t5),
    "mt5": ("MT5", ("ForConditionalGeneration", "EncoderModel", *LABELS), _t5),
    "gpt2": ("GPT2", ("LMHeadModel", "Model", *LABELS), _gpt2),
    "gpt_neo": ("GPTNeo", OF_LLAMA, _gpt_neo),
    "gpt_neox": ("GPTNeoX", OF_LLAMA, _gpt_neox),
    "falcon": ("Falcon", OF_LLAMA, _falcon),
    "bloom": ("Bloom", OF_LLAMA, _bloom),
    "opt": ("OPT", ("ForCausalLM", "Model", "ForSequenceClassification", "ForQuestionAnswering"), _opt),
    "llama": ("Llama", OF_LLAMA, lambda draw: llama(draw, attention_bias=EITHER, mlp_bias=EITHER)),
    "mistral": ("Mistral", OF_LLAMA, lambda draw: llama(draw, sliding_window=(2, 5, None))),
    "ministral": ("Ministral", OF_LLAMA, _ministral),
    "qwen2": ("Qwen2", OF_LLAMA, _windowed),
    "qwen3": ("Qwen3", OF_LLAMA, lambda draw: _windowed(draw, attention_bias=EITHER)),
    "gemma": (
        "Gemma",
        OF_LLAMA[:4],
        lambda draw: with_rope(draw, rotary(draw)) | some(draw, {"rms_norm_eps": (1e-3,)}),
    ),
    "gemma2": ("Gemma2", OF_LLAMA[:4], _gemma2),
    "gemma3_text": ("Gemma3", ("ForCausalLM", "TextModel"), _gemma3),
    "olmo2": ("Olmo2", OF_LLAMA[:3], _olmo),
    "olmo3": ("Olmo3", OF_LLAMA[:3], _olmo3),
    "olmoe": ("Olmoe", OF_LLAMA[:3], _olmoe),
    "smollm3": ("SmolLM3", OF_LLAMA, _smollm3),
    "phi": ("Phi", OF_LLAMA[:4], lambda draw: _partly(draw, qk_layernorm=EITHER)),
    "phi3": ("Phi3", OF_LLAMA[:4], _phi3),
    "granite": ("Granite", OF_LLAMA[:3], _granite),
    "starcoder2": ("Starcoder2", OF_LLAMA[:4], _starcoder2),
    "stablelm": (
        "StableLm",
        OF_LLAMA[:4],
        lambda draw: _partly(draw, use_qkv_bias=EITHER, qk_layernorm=EITHER, use_parallel_residual=EITHER),
    ),
    "cohere": ("Cohere", OF_LLAMA[:3], lambda draw: _cohere(draw, use_qk_norm=EITHER)),
    "cohere2": ("Cohere2", OF_LLAMA[:3], _cohere2),
    "mixtral": ("Mixtral", OF_LLAMA, _mixtral),
    "qwen2_moe": ("Qwen2Moe", OF_LLAMA, _qwen2_moe),
    "qwen3_moe": ("Qwen3Moe", OF_LLAMA, _qwen3_moe),
    "gpt_oss": ("GptOss", OF_LLAMA[:4], _gpt_oss),
    "seed_oss": (
        "SeedOss",
        OF_LLAMA,
        lambda draw: llama(draw, attention_bias=EITHER, attention_out_bias=EITHER, mlp_bias=EITHER),
    ),
    "exaone4": ("Exaone4", OF_LLAMA, _exaone4),
    "ernie4_5": ("Ernie4_5", OF_LLAMA[:3], lambda draw: llama(draw, use_bias=EITHER)),
    "arcee": ("Arcee", OF_LLAMA, lambda draw: llama(draw, attention_bias=EITHER, mlp_bias=EITHER) | _relu2(draw)),
    "nemotron": ("Nemotron", OF_LLAMA, _nemotron),
    "glm": ("Glm", OF_LLAMA[:4], lambda draw: _glm(draw)),
    "glm4": ("Glm4", OF_LLAMA[:4], lambda draw: _glm(draw)),
    "cwm": ("Cwm", OF_LLAMA[:3], _cwm),
    "umt5": ("UMT5", ("ForConditionalGeneration", "EncoderModel", *LABELS), _t5),
    "gpt_bigcode": ("GPTBigCode", ("ForCausalLM", "Model", *LABELS[:2]), _gpt_bigcode),
    "gptj": ("GPTJ", ("ForCausalLM", "Model", "ForSequenceClassification", "ForQuestionAnswering"), _gptj),
    "nomic_bert": ("NomicBert", ("ForMaskedLM", "Model", *LABELS[:2]), _nomic_bert),
    "helium": ("Helium", OF_LLAMA, lambda draw: llama(draw, attention_bias=EITHER, mlp_bias=EITHER)),
}
"""Family → its name in transformers, the ends of the classes that are tried, and what draws a configuration."""


def drawn(family: str, draw: random.Random) -> Case:
    """A random case of a family."""
    name, heads, make = FAMILIES[family]
    raw: Raw = {"model_type": family, **make(draw)}
    if "max_position_embeddings" in raw and "Classification" not in name:
        raw.setdefault("max_position_embeddings", 20)
    head = draw.choice(heads)
    if head == "ForSequenceClassification" and raw.get("pad_token_id") is None:
        raw["pad_token_id"] = 1
    if head in LABELS[:2]:
        raw["id2label"] = {str(i): f"L{i}" for i in range(draw.randint(2, 4))}
    for place in ("bos", "eos"):
        raw.setdefault(f"{place}_token_id", 2)
    return Case(f"{name}{head}", raw | {"architectures": [f"{name}{head}"]}, inputs(raw, head, draw))


def inputs(raw: Raw, head: str, draw: random.Random) -> dict[str, np.ndarray[Any, Any]]:
    """Token IDs, often with padding on a side and the mask that tells it."""
    length, words = draw.randint(2, 14), raw["vocab_size"]
    ids = np.array([[draw.randint(3, words - 1) for _ in range(length)] for _ in range(2)])
    given = {"input_ids": ids}
    ends = raw.get("eos_token_id") if "d_model" in raw and head == LABELS[0] else None
    if ends is not None:  # the last token is found by its ID there
        ids[:, -1] = ends
    padding = draw.choice(("none", "left", "right"))
    if padding != "none":
        mask = np.ones_like(ids)
        mask[1, slice(None, length // 2) if padding == "left" else slice(length - length // 2, None)] = 0
        ids[mask == 0] = raw.get("pad_token_id") or 0
        if ends is not None:
            ids[1, np.flatnonzero(mask[1])[-1]] = ends
        given["attention_mask"] = mask
    twice = "d_model" in raw and head not in LABELS and "EncoderModel" not in head
    if twice:
        most = raw.get("decoder_vocab_size", words)
        given["decoder_input_ids"] = np.array([[draw.randint(3, most - 1) for _ in range(5)] for _ in range(2)])
    return given


ENCODERS = frozenset(FAMILIES) & {
    "bert",
    "distilbert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "data2vec-text",
    "electra",
    "albert",
    "mpnet",
    "modernbert",
    "deberta-v2",
    "nomic_bert",
}
