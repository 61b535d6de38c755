"""Arcee (Arcee AI 2025): Llama whose feed-forward layers have no gate and square what ReLU lets through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import WEIGHTS, LlamaConfig


@dataclass(frozen=True)
class ArceeConfig(LlamaConfig):
    """The keys of Arcee's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "arcee"
    title: ClassVar[str] = "Arcee"
    gated: ClassVar[bool] = False

    hidden_size: int = 2560
    intermediate_size: int = 18432
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5


ARCEE = decoder_family(ArceeConfig, WEIGHTS)
