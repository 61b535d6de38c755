"""Mixtral (Jiang et al. 2024) in its published checkpoints: Mistral with experts in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check
from tui_transformer.model.description import Experts, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.expert_settings import EXPERT, EXPERT_CHECKS, FEED_FORWARD, check_chosen
from tui_transformer.model.families.llama import LAYER, PARTS
from tui_transformer.model.families.mistral import MistralConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import WeightTable

BY_WIDTH = ("dynamic", "yarn", "longrope")
"""Kinds of rotary positions for which the published code reads `head_dim`, and does not work it out."""


@dataclass(frozen=True)
class MixtralConfig(MistralConfig):
    """The keys of Mixtral's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "mixtral"
    title: ClassVar[str] = "Mixtral"
    theta: ClassVar[float] = 1e6
    keys: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    other_names: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    checks: ClassVar[Mapping[str, Check]] = {**MistralConfig.checks, **EXPERT_CHECKS}

    rms_norm_eps: float = 1e-5
    sliding_window: int | None = None
    num_experts: int = 8
    num_experts_per_tok: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_chosen(self.num_experts, self.num_experts_per_tok)

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope:
        """Rotary positions; scaled by the width of a head, they need it in the file, as the published code does."""
        rope = super().read_rope(raw)
        assert isinstance(rope, Rope)  # noqa: S101 - all layers are alike
        if rope.rope_type in BY_WIDTH and raw.get("head_dim") is None:
            raise UsageError(f"head_dim is missing, which rope_type {rope.rope_type} needs: add it to config.json")
        return rope

    def layer(self) -> Layer:
        """With experts whose shares add up to 1 (Jiang et al. 2024, §2.1)."""
        layer = super().layer()
        return replace(layer, feed_forward=Experts(self.num_experts, self.num_experts_per_tok, self.feed_forward()))


WEIGHTS = WeightTable(
    {
        **PARTS,
        f"{FEED_FORWARD}.router": f"{LAYER}.block_sparse_moe.gate",
        f"{EXPERT}.hidden": f"{LAYER}.block_sparse_moe.experts.{{}}.w3",
        f"{EXPERT}.gate": f"{LAYER}.block_sparse_moe.experts.{{}}.w1",
        f"{EXPERT}.output": f"{LAYER}.block_sparse_moe.experts.{{}}.w2",
    },
    prefix="model.",
)
MIXTRAL = decoder_family(MixtralConfig, WEIGHTS)
