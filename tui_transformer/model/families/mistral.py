"""Mistral (Jiang et al. 2023) in its published checkpoints: Llama without biases, and with an attention window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.decoder_only import a_size, optional
from tui_transformer.model.families.llama import GroupedConfig, program, stored


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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_window(self.sliding_window or self.max_position_embeddings, self.max_position_embeddings)


def check_window(window: int, positions: int) -> None:
    """Raise UsageError where a query does not reach every token before it."""
    if window < positions:
        raise UsageError(
            f"sliding_window {window} is shorter than max_position_embeddings {positions}: "
            "attention in a window is not supported"
        )


MISTRAL = Family(MistralConfig.model_type, MistralConfig.from_json, program, stored)
