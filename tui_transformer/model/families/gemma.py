"""Gemma (Gemma Team 2024): Llama with wide heads, embeddings times √d_model, and γ − 1 of every norm in the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import ATTENTION_MATRICES, Embedding
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.families.settings import a_size
from tui_transformer.model.weight_table import Part, WeightTable


@dataclass(frozen=True)
class GemmaBaseConfig(GroupedConfig):
    """The keys that `config.json` of Gemma 1, 2 and 3 share."""

    fixed: ClassVar[Mapping[str, Any]] = {**GroupedConfig.fixed, "use_bidirectional_attention": None}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    checks: ClassVar[Mapping[str, Check]] = {**GroupedConfig.checks, "head_dim": a_size, "attention_bias": truth}

    tie_word_embeddings: bool = True
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    attention_bias: bool = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; false and null say the same."""
        return super().from_json({**raw, "use_bidirectional_attention": raw.get("use_bidirectional_attention") or None})

    def embedding(self) -> Embedding:
        """Words, times √d_model."""
        return Embedding(scale=math.sqrt(self.hidden_size))


@dataclass(frozen=True)
class GemmaConfig(GemmaBaseConfig):
    """The keys of Gemma's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gemma"
    title: ClassVar[str] = "Gemma"

    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    max_position_embeddings: int = 8192

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; "gelu" of old files means its approximation by tanh."""
        approximated = {"hidden_act": "gelu_pytorch_tanh"} if raw.get("hidden_act") == "gelu" else {}
        return super().from_json({**raw, **approximated})


def less_one(tensor: str) -> Part:
    """γ of a norm, which files hold less 1."""
    return Part(tensor, plus=1.0)


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.norm": less_one(f"{LAYER}.input_layernorm"),
        "decoder.{}.feed_forward.norm": less_one(f"{LAYER}.post_attention_layernorm"),
        "decoder.norm": less_one("model.norm"),
    },
    prefix="model.",
)
GEMMA = decoder_family(GemmaConfig, WEIGHTS)
