"""Ministral (Mistral AI 2024): Mistral with a window in some layers, as `layer_types` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.llama import WEIGHTS
from tui_transformer.model.families.windowed import WindowedConfig


@dataclass(frozen=True)
class MinistralConfig(WindowedConfig):
    """The keys of Ministral's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "ministral"
    title: ClassVar[str] = "Ministral"

    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072

    def usual_kind(self, layer: int) -> str:
        """A window in every layer, where there is one."""
        del layer
        return FULL if self.sliding_window is None else SLIDING


MINISTRAL = decoder_family(MinistralConfig, WEIGHTS)
