"""gpt-oss (OpenAI 2025) in its published checkpoints: experts with clamped gates, windows, a sink in every head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from tui_transformer.engine.backend import Host
from tui_transformer.model.checks import Check, positive_float, truth
from tui_transformer.model.description import (
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    Attention,
    Clamp,
    Experts,
    Layer,
)
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.expert_settings import EXPERT, EXPERT_CHECKS, FEED_FORWARD, check_chosen
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import LAYER, PARTS
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.families.windowed import WindowedConfig
from tui_transformer.model.weight_table import Part, Take, WeightTable

THETA = 150000.0
SCALED: Mapping[str, Any] = {
    "rope_type": "yarn",
    "factor": 32.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
"""Rotary positions of a file that says nothing of them."""


@dataclass(frozen=True)
class GptOssConfig(WindowedConfig):
    """The keys of gpt-oss's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt_oss"
    title: ClassVar[str] = "gpt-oss"
    theta: ClassVar[float] = THETA
    keys: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    other_names: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    checks: ClassVar[Mapping[str, Check]] = {
        **WindowedConfig.checks,
        **EXPERT_CHECKS,
        "attention_bias": truth,
        **dict.fromkeys(("swiglu_alpha", "swiglu_limit"), positive_float),
    }

    vocab_size: int = 201088
    hidden_size: int = 2880
    intermediate_size: int = 2880
    num_hidden_layers: int = 36
    num_attention_heads: int = 64
    num_key_value_heads: int | None = 8
    head_dim: int | None = 64
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    rope_parameters: Rope | LayerRopes = field(default_factory=lambda: Rope(rope_theta=THETA, **SCALED))
    num_experts: int = 128
    num_experts_per_tok: int = 4
    attention_bias: bool = True
    sliding_window: int | None = 128
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_chosen(self.num_experts, self.num_experts_per_tok)

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """The rotary positions of a `config.json`."""
        said = raw.get("rope_scaling") or raw.get("rope_parameters")
        return super().read_rope(raw if said else {**raw, "rope_parameters": SCALED})

    def usual_kind(self, layer: int) -> str:
        """A window in every other layer, the first among them."""
        return FULL if layer % 2 else SLIDING

    def attention(self) -> Attention:
        """With a sink in every head."""
        return replace(super().attention(), sink=True)

    def layer(self) -> Layer:
        """With experts whose shares add up to 1 and whose gates are clamped."""
        clamp = Clamp(self.swiglu_alpha, self.swiglu_limit)
        one = replace(self.feed_forward(), bias=FEED_FORWARD_MATRICES, clamp=clamp)
        experts = Experts(self.num_experts, self.num_experts_per_tok, one, router_bias=True)
        return replace(super().layer(), feed_forward=experts)


def _every_other(first: int) -> Take:
    """Gate and hidden values stand in turn on the last axis."""

    def take(tensor: Host, config: Any) -> Host:
        del config
        return tensor[..., first::2]

    return take


def _stacked(tensor: str, take: Take | None = None) -> Part:
    return Part(f"{LAYER}.mlp.experts.{tensor}", take, turned=False, stacked=True, whole=True)


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.sinks": Part(f"{LAYER}.self_attn.sinks", turned=False, whole=True),
        f"{FEED_FORWARD}.router": f"{LAYER}.mlp.router",
        f"{EXPERT}.gate.weight": _stacked("gate_up_proj", _every_other(0)),
        f"{EXPERT}.gate.bias": _stacked("gate_up_proj_bias", _every_other(0)),
        f"{EXPERT}.hidden.weight": _stacked("gate_up_proj", _every_other(1)),
        f"{EXPERT}.hidden.bias": _stacked("gate_up_proj_bias", _every_other(1)),
        f"{EXPERT}.output.weight": _stacked("down_proj"),
        f"{EXPERT}.output.bias": _stacked("down_proj_bias"),
    },
    prefix="model.",
)
GPT_OSS = decoder_family(GptOssConfig, WEIGHTS)
