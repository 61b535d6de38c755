"""Qwen3 (Yang et al. 2025) in its published checkpoints: every query and key head is normalised before it is turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import ATTENTION_MATRICES, Attention
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import WEIGHTS
from tui_transformer.model.families.qwen2 import QwenConfig
from tui_transformer.model.families.settings import a_size


@dataclass(frozen=True)
class Qwen3Config(QwenConfig):
    """The keys of Qwen3's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "qwen3"
    title: ClassVar[str] = "Qwen3"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    checks: ClassVar[Mapping[str, Check]] = {**QwenConfig.checks, "head_dim": a_size, "attention_bias": truth}

    head_dim: int | None = 128
    attention_bias: bool = False

    def attention(self) -> Attention:
        """With an RMS norm over the width of every query and key head."""
        return replace(super().attention(), head_norm=self.final_norm())


QWEN3 = decoder_family(Qwen3Config, WEIGHTS)
