"""Granite (Granite Team 2024): Llama with four multipliers, of embeddings, scores, sublayers and logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.engine.ops import Scale
from tui_transformer.model.checks import Check, positive
from tui_transformer.model.description import Attention, Embedding, Head, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import WEIGHTS, LlamaConfig

MULTIPLIERS = ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier")


@dataclass(frozen=True)
class GraniteConfig(LlamaConfig):
    """The keys of Granite's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "granite"
    title: ClassVar[str] = "Granite"
    checks: ClassVar[Mapping[str, Check]] = {**LlamaConfig.checks, **dict.fromkeys(MULTIPLIERS, positive)}

    embedding_multiplier: float = 1.0
    logits_scaling: float = 1.0
    residual_multiplier: float = 1.0
    attention_multiplier: float = 1.0

    def embedding(self) -> Embedding:
        """Words, multiplied."""
        return Embedding(scale=self.embedding_multiplier)

    def attention(self) -> Attention:
        """With a multiplier of the scores instead of 1 ÷ √d_k."""
        scale = Scale(self.attention_multiplier, f"· {self.attention_multiplier:g}")
        return replace(super().attention(), scale=scale)

    def layer(self) -> Layer:
        """With a multiplier of what a sublayer says."""
        return replace(super().layer(), residual_scale=self.residual_multiplier)

    def word_head(self) -> Head:
        """Logits are divided."""
        return replace(super().word_head(), scale=1.0 / self.logits_scaling)


GRANITE = decoder_family(GraniteConfig, WEIGHTS)
