"""Mistral (Jiang et al. 2023) in its published checkpoints: Llama without biases, and with an attention window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import WEIGHTS, GroupedConfig
from tui_transformer.model.families.settings import a_size, optional


@dataclass(frozen=True)
class MistralConfig(GroupedConfig):
    """The keys of Mistral's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "mistral"
    title: ClassVar[str] = "Mistral"
    checks: ClassVar[Mapping[str, Check]] = {**GroupedConfig.checks, "sliding_window": optional(a_size)}

    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    sliding_window: int | None = 4096

    @property
    def windows(self) -> tuple[int | None, ...]:
        """The same window in every layer."""
        return (self.sliding_window,) * self.num_hidden_layers


MISTRAL = decoder_family(MistralConfig, WEIGHTS)
