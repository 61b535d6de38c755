"""mBART (Liu et al. 2020): BART for many languages, pre-norm, with a norm of the embedding and after each stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tui_transformer.model.families.bart import WEIGHTS, BartConfig, copies, fitted, places
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.settings import described


@dataclass(frozen=True)
class MBartConfig(BartConfig):
    """Sizes and choices of an mBART."""

    model_type: ClassVar[str] = "mbart"
    title: ClassVar[str] = "mBART"
    place: ClassVar[str] = "pre"
    fixed: ClassVar[Mapping[str, Any]] = {**BartConfig.fixed, "normalize_before": True, "add_final_layer_norm": True}

    last_starts: ClassVar[bool] = True
    """A decoder that reads the sentence again begins with its last token: that of a language."""

    vocab_size: int = 50265
    d_model: int = 1024
    encoder_layers: int = 12
    encoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_layers: int = 12
    decoder_attention_heads: int = 16
    decoder_ffn_dim: int = 4096
    max_position_embeddings: int = 1024
    decoder_start_token_id: int | None = None


MBART = Family("mbart", MBartConfig.from_json, described, WEIGHTS, places, fitted, copies)
