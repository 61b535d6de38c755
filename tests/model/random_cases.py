"""Random configurations of every family, with what both sides read: a part of `random_sizes.py`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import random_decoders as decoders
import random_encoders as encoders
from random_drawing import EITHER, LABELS, Raw, both, encoder, llama, rotary, some, with_rope


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


OF_BERT = ("ForMaskedLM", "Model", *LABELS)
OF_LLAMA = ("ForCausalLM", "ForCausalLM", "Model", *LABELS)
FAMILIES: dict[str, tuple[str, Sequence[str], Any]] = {
    "bert": ("Bert", OF_BERT, encoder),
    "distilbert": ("DistilBert", OF_BERT, encoders.distilbert),
    "roberta": ("Roberta", OF_BERT, encoders.roberta),
    "xlm-roberta": ("XLMRoberta", OF_BERT, encoders.roberta),
    "camembert": ("Camembert", OF_BERT, encoders.roberta),
    "data2vec-text": ("Data2VecText", OF_BERT, encoders.roberta),
    "electra": ("Electra", (*OF_BERT, "ForPreTraining"), encoders.electra),
    "albert": ("Albert", OF_BERT, encoders.albert),
    "mpnet": ("MPNet", OF_BERT, encoders.mpnet),
    "modernbert": ("ModernBert", OF_BERT, encoders.modernbert),
    "deberta-v2": ("DebertaV2", OF_BERT, encoders.deberta),
    "bart": ("Bart", ("ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering"), both),
    "mbart": ("MBart", ("ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering"), both),
    "marian": ("Marian", ("MTModel",), encoders.marian),
    "m2m_100": ("M2M100", ("ForConditionalGeneration",), both),
    "pegasus": ("Pegasus", ("ForConditionalGeneration",), both),
    "t5": ("T5", ("ForConditionalGeneration", "EncoderModel", *LABELS), encoders.t5),
    "mt5": ("MT5", ("ForConditionalGeneration", "EncoderModel", *LABELS), encoders.t5),
    "gpt2": ("GPT2", ("LMHeadModel", "Model", *LABELS), decoders.gpt2),
    "gpt_neo": ("GPTNeo", OF_LLAMA, decoders.gpt_neo),
    "gpt_neox": ("GPTNeoX", OF_LLAMA, decoders.gpt_neox),
    "falcon": ("Falcon", OF_LLAMA, decoders.falcon),
    "bloom": ("Bloom", OF_LLAMA, decoders.bloom),
    "opt": ("OPT", ("ForCausalLM", "Model", "ForSequenceClassification", "ForQuestionAnswering"), decoders.opt),
    "llama": ("Llama", OF_LLAMA, lambda draw: llama(draw, attention_bias=EITHER, mlp_bias=EITHER)),
    "mistral": ("Mistral", OF_LLAMA, lambda draw: llama(draw, sliding_window=(2, 5, None))),
    "ministral": ("Ministral", OF_LLAMA, decoders.ministral),
    "qwen2": ("Qwen2", OF_LLAMA, decoders.windowed),
    "qwen3": ("Qwen3", OF_LLAMA, lambda draw: decoders.windowed(draw, attention_bias=EITHER)),
    "gemma": (
        "Gemma",
        OF_LLAMA[:4],
        lambda draw: with_rope(draw, rotary(draw)) | some(draw, {"rms_norm_eps": (1e-3,)}),
    ),
    "gemma2": ("Gemma2", OF_LLAMA[:4], decoders.gemma2),
    "gemma3_text": ("Gemma3", ("ForCausalLM", "TextModel"), decoders.gemma3),
    "olmo2": ("Olmo2", OF_LLAMA[:3], decoders.olmo),
    "olmo3": ("Olmo3", OF_LLAMA[:3], decoders.olmo3),
    "olmoe": ("Olmoe", OF_LLAMA[:3], decoders.olmoe),
    "smollm3": ("SmolLM3", OF_LLAMA, decoders.smollm3),
    "phi": ("Phi", OF_LLAMA[:4], lambda draw: decoders.partly(draw, qk_layernorm=EITHER)),
    "phi3": ("Phi3", OF_LLAMA[:4], decoders.phi3),
    "granite": ("Granite", OF_LLAMA[:3], decoders.granite),
    "starcoder2": ("Starcoder2", OF_LLAMA[:4], decoders.starcoder2),
    "stablelm": (
        "StableLm",
        OF_LLAMA[:4],
        lambda draw: decoders.partly(draw, use_qkv_bias=EITHER, qk_layernorm=EITHER, use_parallel_residual=EITHER),
    ),
    "cohere": ("Cohere", OF_LLAMA[:3], lambda draw: decoders.cohere(draw, use_qk_norm=EITHER)),
    "cohere2": ("Cohere2", OF_LLAMA[:3], decoders.cohere2),
    "mixtral": ("Mixtral", OF_LLAMA, decoders.mixtral),
    "qwen2_moe": ("Qwen2Moe", OF_LLAMA, decoders.qwen2_moe),
    "qwen3_moe": ("Qwen3Moe", OF_LLAMA, decoders.qwen3_moe),
    "gpt_oss": ("GptOss", OF_LLAMA[:4], decoders.gpt_oss),
    "seed_oss": (
        "SeedOss",
        OF_LLAMA,
        lambda draw: llama(draw, attention_bias=EITHER, attention_out_bias=EITHER, mlp_bias=EITHER),
    ),
    "exaone4": ("Exaone4", OF_LLAMA, decoders.exaone4),
    "ernie4_5": ("Ernie4_5", OF_LLAMA[:3], lambda draw: llama(draw, use_bias=EITHER)),
    "arcee": (
        "Arcee",
        OF_LLAMA,
        lambda draw: llama(draw, attention_bias=EITHER, mlp_bias=EITHER) | decoders.relu2(draw),
    ),
    "nemotron": ("Nemotron", OF_LLAMA, decoders.nemotron),
    "glm": ("Glm", OF_LLAMA[:4], lambda draw: decoders.glm(draw)),
    "glm4": ("Glm4", OF_LLAMA[:4], lambda draw: decoders.glm(draw)),
    "cwm": ("Cwm", OF_LLAMA[:3], decoders.cwm),
    "umt5": ("UMT5", ("ForConditionalGeneration", "EncoderModel", *LABELS), encoders.t5),
    "gpt_bigcode": ("GPTBigCode", ("ForCausalLM", "Model", *LABELS[:2]), decoders.gpt_bigcode),
    "gptj": ("GPTJ", ("ForCausalLM", "Model", "ForSequenceClassification", "ForQuestionAnswering"), decoders.gptj),
    "nomic_bert": ("NomicBert", ("ForMaskedLM", "Model", *LABELS[:2]), encoders.nomic_bert),
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
