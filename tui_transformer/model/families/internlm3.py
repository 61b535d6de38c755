"""InternLM 3 (Shanghai AI Laboratory 2025): Llama under other names of its biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import WEIGHTS, LlamaConfig


@dataclass(frozen=True)
class InternLm3Config(LlamaConfig):
    """The keys of InternLM 3's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "internlm3"
    title: ClassVar[str] = "InternLM 3"
    other_names: ClassVar[Mapping[str, str]] = {"attention_bias": "qkv_bias", "mlp_bias": "bias"}

    vocab_size: int = 128512
    pad_token_id: int | None = 2
    intermediate_size: int = 10240
    num_hidden_layers: int = 48
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 32768
    rms_norm_eps: float = 1e-5


INTERNLM3 = decoder_family(InternLm3Config, WEIGHTS)
