"""BERT: an encoder with segments, trained to fill in masked words (Devlin et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.families.base import Family
from tui_transformer.model.families.masked_words import MaskedWordConfig, MaskedWordTensors, program

PREFIX = "bert."

KEYS: Mapping[str, str] = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "layers": "num_hidden_layers",
    "position_rows": "max_position_embeddings",
    "segments": "type_vocab_size",
    "pad_id": "pad_token_id",
    "activation": "hidden_act",
    "norm_epsilon": "layer_norm_eps",
    "tie_output": "tie_word_embeddings",
}
"""What the settings are called in `config.json`."""

ENCODER: Mapping[str, str] = {
    "embedding.tokens": "embeddings.word_embeddings",
    "embedding.positions": "embeddings.position_embeddings",
    "embedding.segments": "embeddings.token_type_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
    "encoder.{}.self_attention.query": "encoder.layer.{}.attention.self.query",
    "encoder.{}.self_attention.key": "encoder.layer.{}.attention.self.key",
    "encoder.{}.self_attention.value": "encoder.layer.{}.attention.self.value",
    "encoder.{}.self_attention.output": "encoder.layer.{}.attention.output.dense",
    "encoder.{}.self_attention.norm": "encoder.layer.{}.attention.output.LayerNorm",
    "encoder.{}.feed_forward.hidden": "encoder.layer.{}.intermediate.dense",
    "encoder.{}.feed_forward.output": "encoder.layer.{}.output.dense",
    "encoder.{}.feed_forward.norm": "encoder.layer.{}.output.LayerNorm",
}
"""Steps of the encoder and their tensors, without a prefix."""

TENSORS: Mapping[str, str] = {
    **{step: PREFIX + tensor for step, tensor in ENCODER.items()},
    "output.transform.hidden": "cls.predictions.transform.dense",
    "output.transform.norm": "cls.predictions.transform.LayerNorm",
    "output.logits": "cls.predictions.decoder",
}


@dataclass(frozen=True)
class BertConfig(MaskedWordConfig):
    """Sizes and choices of a BERT."""

    model_type: ClassVar[str] = "bert"
    keys: ClassVar[Mapping[str, str]] = KEYS

    segments: int = 2


NAMES = MaskedWordTensors(PREFIX, TENSORS)
BERT = Family("bert", BertConfig.from_json, program, NAMES.stored, fitted=NAMES.fitted, copies=NAMES.copies)
