"""Qwen2 (Yang et al. 2024), Qwen3 (Yang et al. 2025), and the families with experts: theirs, Mixtral and gpt-oss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, a_size, positive_float
from tui_transformer.model.description import (
    FEED_FORWARD_MATRICES,
    QUERY_KEY_VALUE,
    Attention,
    Clamp,
    Experts,
)
from tui_transformer.model.families.decoder import (
    EXPERT,
    FEED_FORWARD,
    LAYER,
    ROUTED_PARTS,
    DecoderConfig,
    expert_parts,
    llama_like,
)
from tui_transformer.model.families.rope import SLIDING, LayerRopes, Rope
from tui_transformer.model.families.style import ALWAYS, BIASED, Style
from tui_transformer.model.weight_table import Part, Take

WINDOWS = {"sliding_window": 4096, "layer_types": None, "use_sliding_window": False}


def in_later_layers(config: DecoderConfig, layer: int) -> bool:
    """Windows in the layers from `max_window_layers` on."""
    first: int = config.setting("max_window_layers")
    return layer >= first


@dataclass(frozen=True)
class Qwen2Config(DecoderConfig):
    """Qwen2: Llama with biases of query, key and value."""

    model_type = "qwen2"
    style = Style(biases={ALWAYS: QUERY_KEY_VALUE})
    own = WINDOWS | {"max_window_layers": 28}

    slides = in_later_layers


@dataclass(frozen=True)
class Qwen3Config(DecoderConfig):
    """Qwen3: every query and key head is normalised before it is turned."""

    model_type = "qwen3"
    style = replace(BIASED, head_norms="alike")
    own = WINDOWS | {"max_window_layers": 28, "attention_bias": False}
    checks: ClassVar[Mapping[str, Check]] = {"head_dim": a_size}

    slides = in_later_layers


# Experts in some layers, in others one feed-forward layer


SPARSE = WINDOWS | {
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "norm_topk_prob": False,
    "mlp_only_layers": (),
}


@dataclass(frozen=True)
class Qwen2MoeConfig(DecoderConfig):
    """Qwen2-MoE (Qwen Team 2024): Qwen2 with experts, one of which all tokens share."""

    model_type = "qwen2_moe"
    style = Style(biases={"qkv_bias": QUERY_KEY_VALUE})
    own = SPARSE | {
        "max_window_layers": 28,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
        "num_experts": 60,
        "num_experts_per_tok": 4,
        "qkv_bias": True,
    }
    other_names: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    weights = llama_like(
        {
            **ROUTED_PARTS,
            f"{FEED_FORWARD}.shared.hidden": f"{LAYER}.mlp.shared_expert.up_proj",
            f"{FEED_FORWARD}.shared.gate": f"{LAYER}.mlp.shared_expert.gate_proj",
            f"{FEED_FORWARD}.shared.output": f"{LAYER}.mlp.shared_expert.down_proj",
            f"{FEED_FORWARD}.shared.router": f"{LAYER}.mlp.shared_expert_gate",
        }
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.setting("use_sliding_window"):
            a_size("sliding_window", self.window)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; some say a window of 0, where there is none."""
        return super().from_json(_without_zero(raw))

    def slides(self, layer: int) -> bool:
        return layer % 2 == 0 and layer < self.setting("max_window_layers")

    def experts(self) -> Experts | None:
        routed = super().experts()
        shared = replace(self.feed_forward(), width=self.setting("shared_expert_intermediate_size"))
        return None if routed is None else replace(routed, shared=shared)


def _without_zero(raw: Mapping[str, Any]) -> dict[str, Any]:
    window = {"sliding_window": None} if raw.get("sliding_window") == 0 else {}
    return {**raw, "mlp_only_layers": raw.get("mlp_only_layers") or (), **window}


@dataclass(frozen=True)
class Qwen3MoeConfig(DecoderConfig):
    """Qwen3-MoE: Qwen3 with experts; the kind of every layer is the same."""

    model_type = "qwen3_moe"
    style = Qwen3Config.style
    own = SPARSE | {"attention_bias": False}
    other_names = Qwen2MoeConfig.other_names
    weights = llama_like(ROUTED_PARTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.setting("use_sliding_window"):
            a_size("sliding_window", self.window)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        return super().from_json(_without_zero(raw))

    @property
    def kinds(self) -> tuple[str, ...]:
        return (SLIDING,) * self.num_hidden_layers


# Experts in every layer

BY_WIDTH = ("dynamic", "yarn", "longrope")
"""Kinds of rotary positions for which the published code of Mixtral reads `head_dim`, and does not work it out."""


@dataclass(frozen=True)
class MixtralConfig(DecoderConfig):
    """Mixtral (Jiang et al. 2024): Mistral with experts whose shares add up to 1 (§2.1)."""

    model_type = "mixtral"
    own: ClassVar[Mapping[str, Any]] = {"sliding_window": None, "num_experts": 8, "num_experts_per_tok": 2}
    keys: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    other_names: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    weights = llama_like(expert_parts("block_sparse_moe.gate", "block_sparse_moe.experts", "w3", "w1", "w2"))

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """Rotary positions; scaled by the width of a head, they need it in the file, as the published code does."""
        rope = super().read_rope(raw)
        assert isinstance(rope, Rope)  # noqa: S101 - all layers are alike
        if rope.rope_type in BY_WIDTH and raw.get("head_dim") is None:
            raise UsageError(f"head_dim is missing, which rope_type {rope.rope_type} needs: add it to config.json")
        return rope


SCALED: Mapping[str, Any] = {
    "rope_type": "yarn",
    "factor": 32.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
"""Rotary positions of a file of gpt-oss that says nothing of them."""


def _every_other(first: int) -> Take:
    """Gate and hidden values stand in turn on the last axis."""

    def take(tensor: Host, config: Any) -> Host:
        del config
        return tensor[..., first::2]

    return take


def _stacked(tensor: str, take: Take | None = None) -> Part:
    return Part(f"{LAYER}.mlp.experts.{tensor}", take, turned=False, stacked=True, whole=True)


@dataclass(frozen=True)
class GptOssConfig(DecoderConfig):
    """gpt-oss (OpenAI 2025): experts with clamped gates, a window in every other layer, a sink in every head."""

    model_type = "gpt_oss"
    style = BIASED
    own: ClassVar[Mapping[str, Any]] = {
        "num_experts": 128,
        "num_experts_per_tok": 4,
        "attention_bias": True,
        "sliding_window": 128,
        "layer_types": None,
    }
    keys = MixtralConfig.keys
    other_names = MixtralConfig.other_names
    checks = dict.fromkeys(("swiglu_alpha", "swiglu_limit"), positive_float)
    weights = llama_like(
        {
            "decoder.{}.self_attention.sinks": Part(f"{LAYER}.self_attn.sinks", turned=False, whole=True),
            f"{FEED_FORWARD}.router": f"{LAYER}.mlp.router",
            f"{EXPERT}.gate.weight": _stacked("gate_up_proj", _every_other(0)),
            f"{EXPERT}.gate.bias": _stacked("gate_up_proj_bias", _every_other(0)),
            f"{EXPERT}.hidden.weight": _stacked("gate_up_proj", _every_other(1)),
            f"{EXPERT}.hidden.bias": _stacked("gate_up_proj_bias", _every_other(1)),
            f"{EXPERT}.output.weight": _stacked("down_proj"),
            f"{EXPERT}.output.bias": _stacked("down_proj_bias"),
        }
    )

    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        said = raw.get("rope_scaling") or raw.get("rope_parameters")
        return super().read_rope(raw if said else {**raw, "rope_parameters": SCALED})

    def slides(self, layer: int) -> bool:
        return layer % 2 == 0

    def attention(self) -> Attention:
        return replace(super().attention(), sink=True)

    def experts(self) -> Experts:
        """With clamped gates and every bias; shares add up to 1."""
        clamp = Clamp(self.swiglu_alpha, self.swiglu_limit)
        one = replace(self.feed_forward(), bias=FEED_FORWARD_MATRICES, clamp=clamp)
        return Experts(self.setting("num_experts"), self.setting("num_experts_per_tok"), one, router_bias=True)
