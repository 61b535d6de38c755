"""OLMoE (Muennighoff et al. 2024) in its published checkpoints: Llama with experts, and norms of all heads together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import Experts, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.expert_settings import EXPERT_CHECKS, ROUTED_PARTS, check_chosen
from tui_transformer.model.families.llama import PARTS
from tui_transformer.model.families.olmo2 import OlmoConfig
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class OlmoeConfig(OlmoConfig):
    """The keys of OLMoE's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "olmoe"
    title: ClassVar[str] = "OLMoE"
    other_names: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    fixed: ClassVar[Mapping[str, Any]] = {**OlmoConfig.fixed, "clip_qkv": None}
    checks: ClassVar[Mapping[str, Check]] = {**OlmoConfig.checks, **EXPERT_CHECKS, "norm_topk_prob": truth}

    hidden_size: int = 2048
    intermediate_size: int = 2048
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    max_position_embeddings: int = 4096
    num_experts: int = 64
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_chosen(self.num_experts, self.num_experts_per_tok)

    def layer(self) -> Layer:
        """Pre-norm, with experts (Muennighoff et al. 2024, §2)."""
        experts = Experts(self.num_experts, self.num_experts_per_tok, self.feed_forward(), self.norm_topk_prob)
        return replace(super().layer(), place="pre", feed_forward=experts)


WEIGHTS = WeightTable({**PARTS, **ROUTED_PARTS}, prefix="model.")
OLMOE = decoder_family(OlmoeConfig, WEIGHTS)
