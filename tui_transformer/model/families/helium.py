"""Helium (Kyutai 2025): Llama whose rotary positions turn pairs of columns side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check
from tui_transformer.model.description import QUERY_KEY_VALUE
from tui_transformer.model.families.cohere import WEIGHTS
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import LlamaConfig
from tui_transformer.model.families.settings import a_size


@dataclass(frozen=True)
class HeliumConfig(LlamaConfig):
    """The keys of Helium's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "helium"
    title: ClassVar[str] = "Helium"
    theta: ClassVar[float] = 100_000.0
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": QUERY_KEY_VALUE}
    checks: ClassVar[Mapping[str, Check]] = {**LlamaConfig.checks, "head_dim": a_size}

    vocab_size: int = 48000
    pad_token_id: int | None = 3
    hidden_size: int = 2560
    intermediate_size: int = 7040
    num_hidden_layers: int = 24
    num_attention_heads: int = 20
    num_key_value_heads: int | None = 20
    head_dim: int = 128
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-8


HELIUM = decoder_family(HeliumConfig, WEIGHTS)
