"""Qwen2-MoE (Qwen Team 2024) in its published checkpoints: Qwen2 with experts, one of which all tokens share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import QUERY_KEY_VALUE, Experts
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.expert_settings import FEED_FORWARD, ROUTED_PARTS, SparseConfig
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.llama import LAYER, PARTS
from tui_transformer.model.families.qwen2 import from_layer
from tui_transformer.model.families.settings import a_size
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class Qwen2MoeConfig(SparseConfig):
    """The keys of Qwen2-MoE's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "qwen2_moe"
    title: ClassVar[str] = "Qwen2-MoE"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"qkv_bias": QUERY_KEY_VALUE}
    checks: ClassVar[Mapping[str, Check]] = {
        **SparseConfig.checks,
        "qkv_bias": truth,
        "shared_expert_intermediate_size": a_size,
        "max_window_layers": from_layer,
    }

    intermediate_size: int = 5632
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    max_window_layers: int = 28
    moe_intermediate_size: int = 1408
    shared_expert_intermediate_size: int = 5632
    num_experts: int = 60
    num_experts_per_tok: int = 4
    qkv_bias: bool = True

    def usual_kind(self, layer: int) -> str:
        """A window in every other layer, the first among them, before `max_window_layers`."""
        return FULL if layer % 2 or layer >= self.max_window_layers else SLIDING

    def experts(self) -> Experts:
        """With one that all tokens share (Qwen Team 2024)."""
        shared = replace(self.feed_forward(), width=self.shared_expert_intermediate_size)
        return replace(super().experts(), shared=shared)


SHARED = f"{FEED_FORWARD}.shared"
WEIGHTS = WeightTable(
    {
        **PARTS,
        **ROUTED_PARTS,
        f"{SHARED}.hidden": f"{LAYER}.mlp.shared_expert.up_proj",
        f"{SHARED}.gate": f"{LAYER}.mlp.shared_expert.gate_proj",
        f"{SHARED}.output": f"{LAYER}.mlp.shared_expert.down_proj",
        f"{SHARED}.router": f"{LAYER}.mlp.shared_expert_gate",
    },
    prefix="model.",
)
QWEN2_MOE = decoder_family(Qwen2MoeConfig, WEIGHTS)
