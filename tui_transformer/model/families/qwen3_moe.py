"""Qwen3-MoE (Yang et al. 2025) in its published checkpoints: Qwen3 with experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import ATTENTION_MATRICES, Attention
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.expert_settings import ROUTED_PARTS, SparseConfig
from tui_transformer.model.families.layer_kinds import SLIDING
from tui_transformer.model.families.llama import PARTS
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class Qwen3MoeConfig(SparseConfig):
    """The keys of Qwen3-MoE's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "qwen3_moe"
    title: ClassVar[str] = "Qwen3-MoE"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    checks: ClassVar[Mapping[str, Check]] = {**SparseConfig.checks, "attention_bias": truth}

    intermediate_size: int = 6144
    num_key_value_heads: int | None = 4
    attention_bias: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The same of every layer."""
        return (SLIDING,) * self.num_hidden_layers

    def usual_kind(self, layer: int) -> str:
        """A window, where windows are used."""
        del layer
        return SLIDING

    def attention(self) -> Attention:
        """With an RMS norm over the width of every query and key head."""
        return replace(super().attention(), head_norm=self.final_norm())


WEIGHTS = WeightTable({**PARTS, **ROUTED_PARTS}, prefix="model.")
QWEN3_MOE = decoder_family(Qwen3MoeConfig, WEIGHTS)
