"""Seed-OSS (ByteDance Seed 2025): Llama with biases of query, key and value, and a setting for that of the output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import ATTENTION_MATRICES, QUERY_KEY_VALUE
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import WEIGHTS, LlamaConfig


@dataclass(frozen=True)
class SeedOssConfig(LlamaConfig):
    """The keys of Seed-OSS' `config.json` that change what is computed."""

    model_type: ClassVar[str] = "seed_oss"
    title: ClassVar[str] = "Seed-OSS"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {
        "attention_bias": QUERY_KEY_VALUE,
        "attention_out_bias": ATTENTION_MATRICES - QUERY_KEY_VALUE,
    }
    checks: ClassVar[Mapping[str, Check]] = {**LlamaConfig.checks, "attention_out_bias": truth}

    vocab_size: int = 155136
    pad_token_id: int | None = 1
    intermediate_size: int = 27648
    num_hidden_layers: int = 64
    num_attention_heads: int = 80
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False


SEED_OSS = decoder_family(SeedOssConfig, WEIGHTS)
