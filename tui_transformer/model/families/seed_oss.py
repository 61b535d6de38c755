"""Seed-OSS (ByteDance Seed 2025): Llama with biases of query, key and value, and a setting for that of the output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import WEIGHTS, LlamaConfig


@dataclass(frozen=True)
class SeedOssConfig(LlamaConfig):
    """The keys of Seed-OSS' `config.json` that change what is computed."""

    model_type: ClassVar[str] = "seed_oss"
    title: ClassVar[str] = "Seed-OSS"
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

    @property
    def biased(self) -> frozenset[str]:
        """The matrices of the attention that have a bias."""
        own = {"query", "key", "value"} if self.attention_bias else set()
        return frozenset(own | ({"output"} if self.attention_out_bias else set()))


SEED_OSS = decoder_family(SeedOssConfig, WEIGHTS)
