"""Qwen2 (Yang et al. 2024) and Qwen3 (Yang et al. 2025) in their published checkpoints, with experts and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.model.checks import a_size
from tui_transformer.model.description import ATTENTION_MATRICES, QUERY_KEY_VALUE, Experts
from tui_transformer.model.families.decoder import (
    ALWAYS,
    FEED_FORWARD,
    LAYER,
    PARTS,
    ROUTED_PARTS,
    WEIGHTS,
    DecoderConfig,
)
from tui_transformer.model.families.layer_kinds import SLIDING
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class QwenSettings:
    """The settings that Qwen2 and Qwen3 share."""

    vocab_size: int = 151936
    intermediate_size: int | None = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None
    use_sliding_window: bool = False
    max_window_layers: int = 28

    def slides(self, layer: int) -> bool:
        """In the layers from `max_window_layers` on."""
        return layer >= self.max_window_layers


@dataclass(frozen=True)
class Qwen2Config(QwenSettings, DecoderConfig):
    """Qwen2: Llama with biases of query, key and value."""

    model_type = "qwen2"
    title = "Qwen2"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {ALWAYS: QUERY_KEY_VALUE}
    weights = WEIGHTS


@dataclass(frozen=True)
class Qwen3Config(QwenSettings, DecoderConfig):
    """Qwen3: every query and key head is normalised before it is turned."""

    model_type = "qwen3"
    title = "Qwen3"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    head_norms = "alike"
    weights = WEIGHTS

    head_dim: int = 128
    attention_bias: bool = False


@dataclass(frozen=True)
class SparseSettings:
    """The settings of models in which some layers have experts and others one feed-forward layer."""

    other_names: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}

    vocab_size: int = 151936
    hidden_size: int = 2048
    num_hidden_layers: int = 24
    max_position_embeddings: int = 32768
    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None
    use_sliding_window: bool = False
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 768
    num_experts: int = 128
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = False
    mlp_only_layers: tuple[int, ...] = ()

    def check_window(self) -> None:
        """Raise UsageError where windows are used and there is none."""
        if self.use_sliding_window:
            a_size("sliding_window", self.sliding_window)


def _said(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with null for a window of 0, which is how some files say that there is none."""
    window = {"sliding_window": None} if raw.get("sliding_window") == 0 else {}
    return {**raw, "mlp_only_layers": raw.get("mlp_only_layers") or (), **window}


@dataclass(frozen=True)
class Qwen2MoeConfig(SparseSettings, DecoderConfig):
    """Qwen2-MoE (Qwen Team 2024): Qwen2 with experts, one of which all tokens share."""

    model_type = "qwen2_moe"
    title = "Qwen2-MoE"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"qkv_bias": QUERY_KEY_VALUE}
    weights = WeightTable(
        {
            **PARTS,
            **ROUTED_PARTS,
            f"{FEED_FORWARD}.shared.hidden": f"{LAYER}.mlp.shared_expert.up_proj",
            f"{FEED_FORWARD}.shared.gate": f"{LAYER}.mlp.shared_expert.gate_proj",
            f"{FEED_FORWARD}.shared.output": f"{LAYER}.mlp.shared_expert.down_proj",
            f"{FEED_FORWARD}.shared.router": f"{LAYER}.mlp.shared_expert_gate",
        },
        prefix="model.",
    )

    intermediate_size: int | None = 5632
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    max_window_layers: int = 28
    moe_intermediate_size: int = 1408
    shared_expert_intermediate_size: int = 5632
    num_experts: int = 60
    num_experts_per_tok: int = 4
    qkv_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_window()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        return super().from_json(_said(raw))

    def slides(self, layer: int) -> bool:
        """In every other layer, the first among them, before `max_window_layers`."""
        return layer % 2 == 0 and layer < self.max_window_layers

    def experts(self) -> Experts | None:
        """With one that all tokens share (Qwen Team 2024)."""
        routed = super().experts()
        shared = replace(self.feed_forward(), width=self.shared_expert_intermediate_size)
        return None if routed is None else replace(routed, shared=shared)


@dataclass(frozen=True)
class Qwen3MoeConfig(SparseSettings, DecoderConfig):
    """Qwen3-MoE: Qwen3 with experts."""

    model_type = "qwen3_moe"
    title = "Qwen3-MoE"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    head_norms = "alike"
    weights = WeightTable({**PARTS, **ROUTED_PARTS}, prefix="model.")

    intermediate_size: int | None = 6144
    num_key_value_heads: int | None = 4
    attention_bias: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_window()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        return super().from_json(_said(raw))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The same of every layer."""
        return (SLIDING,) * self.num_hidden_layers
