"""Random configurations of every family, with what both sides read."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import random_configurations as made
from random_configurations import ACTIVATIONS, EITHER, LABELS, Raw, both, encoder, layer_types, llama, renamed, some


@dataclass(frozen=True)
class Case:
    """A checkpoint that is to be compared: the name of its class in transformers, `config.json`, what both read."""

    name: str
    raw: Raw
    inputs: dict[str, np.ndarray[Any, Any]]

    @property
    def family(self) -> str:
        """The model type."""
        return str(self.raw["model_type"])

    def __str__(self) -> str:
        return f"{self.name} {json.dumps(self.raw)} { ({name: ids.tolist() for name, ids in self.inputs.items()}) }"


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
    return made.with_rope(draw, raw)


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


OF_BERT = ("ForMaskedLM", "Model", *LABELS)
OF_LLAMA = ("ForCausalLM", "ForCausalLM", "Model", *LABELS)
FAMILIES: dict[str, tuple[str, Sequence[str], Any]] = {
    "bert": ("Bert", OF_BERT, encoder),
    "distilbert": ("DistilBert", OF_BERT, distilbert),
    "roberta": ("Roberta", OF_BERT, roberta),
    "xlm-roberta": ("XLMRoberta", OF_BERT, roberta),
    "camembert": ("Camembert", OF_BERT, roberta),
    "data2vec-text": ("Data2VecText", OF_BERT, roberta),
    "electra": ("Electra", (*OF_BERT, "ForPreTraining"), electra),
    "albert": ("Albert", OF_BERT, albert),
    "mpnet": ("MPNet", OF_BERT, mpnet),
    "modernbert": ("ModernBert", OF_BERT, modernbert),
    "deberta-v2": ("DebertaV2", OF_BERT, deberta),
    "bart": ("Bart", ("ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering"), both),
    "mbart": ("MBart", ("ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering"), both),
    "marian": ("Marian", ("MTModel",), marian),
    "m2m_100": ("M2M100", ("ForConditionalGeneration",), both),
    "pegasus": ("Pegasus", ("ForConditionalGeneration",), both),
    "t5": ("T5", ("ForConditionalGeneration", "EncoderModel", *LABELS), t5),
    "mt5": ("MT5", ("ForConditionalGeneration", "EncoderModel", *LABELS), t5),
    "gpt2": ("GPT2", ("LMHeadModel", "Model", *LABELS), made.gpt2),
    "gpt_neo": ("GPTNeo", OF_LLAMA, made.gpt_neo),
    "gpt_neox": ("GPTNeoX", OF_LLAMA, made.gpt_neox),
    "falcon": ("Falcon", OF_LLAMA, made.falcon),
    "bloom": ("Bloom", OF_LLAMA, made.bloom),
    "opt": ("OPT", ("ForCausalLM", "Model", "ForSequenceClassification", "ForQuestionAnswering"), made.opt),
    "llama": ("Llama", OF_LLAMA, lambda draw: llama(draw, attention_bias=EITHER, mlp_bias=EITHER)),
    "mistral": ("Mistral", OF_LLAMA, lambda draw: llama(draw, sliding_window=(2, 5, None))),
    "ministral": ("Ministral", OF_LLAMA, made.ministral),
    "qwen2": ("Qwen2", OF_LLAMA, made.windowed),
    "qwen3": ("Qwen3", OF_LLAMA, lambda draw: made.windowed(draw, attention_bias=EITHER)),
    "gemma": (
        "Gemma",
        OF_LLAMA[:4],
        lambda draw: made.with_rope(draw, made.rotary(draw)) | some(draw, {"rms_norm_eps": (1e-3,)}),
    ),
    "gemma2": ("Gemma2", OF_LLAMA[:4], made.gemma2),
    "gemma3_text": ("Gemma3", ("ForCausalLM", "TextModel"), made.gemma3),
    "olmo2": ("Olmo2", OF_LLAMA[:3], made.olmo),
    "olmo3": ("Olmo3", OF_LLAMA[:3], made.olmo3),
    "olmoe": ("Olmoe", OF_LLAMA[:3], made.olmoe),
    "smollm3": ("SmolLM3", OF_LLAMA, made.smollm3),
    "phi": ("Phi", OF_LLAMA[:4], lambda draw: made.partly(draw, qk_layernorm=EITHER)),
    "phi3": ("Phi3", OF_LLAMA[:4], made.phi3),
    "granite": ("Granite", OF_LLAMA[:3], made.granite),
    "starcoder2": ("Starcoder2", OF_LLAMA[:4], made.starcoder2),
    "stablelm": (
        "StableLm",
        OF_LLAMA[:4],
        lambda draw: made.partly(draw, use_qkv_bias=EITHER, qk_layernorm=EITHER, use_parallel_residual=EITHER),
    ),
    "cohere": ("Cohere", OF_LLAMA[:3], lambda draw: made.cohere(draw, use_qk_norm=EITHER)),
    "cohere2": ("Cohere2", OF_LLAMA[:3], made.cohere2),
    "mixtral": ("Mixtral", OF_LLAMA, made.mixtral),
    "qwen2_moe": ("Qwen2Moe", OF_LLAMA, made.qwen2_moe),
    "qwen3_moe": ("Qwen3Moe", OF_LLAMA, made.qwen3_moe),
    "gpt_oss": ("GptOss", OF_LLAMA[:4], made.gpt_oss),
    "seed_oss": (
        "SeedOss",
        OF_LLAMA,
        lambda draw: llama(draw, attention_bias=EITHER, attention_out_bias=EITHER, mlp_bias=EITHER),
    ),
    "exaone4": ("Exaone4", OF_LLAMA, made.exaone4),
    "ernie4_5": ("Ernie4_5", OF_LLAMA[:3], lambda draw: llama(draw, use_bias=EITHER)),
    "arcee": ("Arcee", OF_LLAMA, lambda draw: llama(draw, attention_bias=EITHER, mlp_bias=EITHER) | made.relu2(draw)),
    "nemotron": ("Nemotron", OF_LLAMA, made.nemotron),
    "glm": ("Glm", OF_LLAMA[:4], made.glm),
    "glm4": ("Glm4", OF_LLAMA[:4], made.glm),
    "cwm": ("Cwm", OF_LLAMA[:3], made.cwm),
    "umt5": ("UMT5", ("ForConditionalGeneration", "EncoderModel", *LABELS), t5),
    "gpt_bigcode": ("GPTBigCode", ("ForCausalLM", "Model", *LABELS[:2]), made.gpt_bigcode),
    "gptj": ("GPTJ", ("ForCausalLM", "Model", "ForSequenceClassification", "ForQuestionAnswering"), made.gptj),
    "nomic_bert": ("NomicBert", ("ForMaskedLM", "Model", *LABELS[:2]), nomic_bert),
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


ENCODERS = frozenset(family for family, (_, heads, _) in FAMILIES.items() if "ForMaskedLM" in heads)
