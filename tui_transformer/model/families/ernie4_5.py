"""ERNIE 4.5 (Baidu 2025), dense: Llama whose rotary positions turn pairs of columns side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import ATTENTION_MATRICES
from tui_transformer.model.families.cohere import WEIGHTS
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import GroupedConfig


@dataclass(frozen=True)
class Ernie45Config(GroupedConfig):
    """The keys of ERNIE 4.5's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "ernie4_5"
    title: ClassVar[str] = "ERNIE 4.5"
    theta: ClassVar[float] = 500_000.0
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"use_bias": ATTENTION_MATRICES}
    feed_forward_bias: ClassVar[str] = "use_bias"
    checks: ClassVar[Mapping[str, Check]] = {**GroupedConfig.checks, "use_bias": truth}

    vocab_size: int = 103424
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    hidden_size: int = 1024
    intermediate_size: int = 3072
    num_hidden_layers: int = 18
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    use_bias: bool = False


ERNIE4_5 = decoder_family(Ernie45Config, WEIGHTS)
