"""Qwen2 (Yang et al. 2024), Qwen3 (Yang et al. 2025), and the families with experts: theirs, Mixtral and gpt-oss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import a_size, positive_float
from tui_transformer.model.description import Attention, Experts
from tui_transformer.model.families.decoder import (
    EXPERT,
    FEED_FORWARD,
    LAYER,
    ROUTED_PARTS,
    DecoderConfig,
    decoder,
    expert_parts,
    llama_like,
)
from tui_transformer.model.families.rope import SLIDING, LayerRopes, Rope
from tui_transformer.model.families.style import ALWAYS, BIASED, Style, every_other
from tui_transformer.model.weight_table import Part, Take, in_turn
from tui_transformer.records import dataclass, replace

WINDOWS = {"sliding_window": 4096, "layer_types": None, "use_sliding_window": False}


def in_later_layers(config: Any, layer: int) -> bool:
    """Windows in the layers from `max_window_layers` on."""
    first: int = config.max_window_layers
    return layer >= first


Qwen2Config = decoder(
    "qwen2",
    Style(bias=ALWAYS, output_bias="", slides=in_later_layers),
    WINDOWS | {"max_window_layers": 28},
)
"""Qwen2: Llama with biases of query, key and value."""

QWEN3 = replace(BIASED, head_norms="alike")
Qwen3Config = decoder(
    "qwen3",
    replace(QWEN3, slides=in_later_layers),
    WINDOWS | {"max_window_layers": 28, "attention_bias": False},
    checks={"head_dim": a_size},
)
"""Qwen3: every query and key head is normalised before it is turned."""

# Experts in some layers, in others one feed-forward layer

SPARSE = WINDOWS | {
    "decoder_sparse_step": 1,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "norm_topk_prob": False,
    "mlp_only_layers": (),
}
LOCAL_EXPERTS = {"num_experts": "num_local_experts"}

Qwen2MoeConfig = decoder(
    "qwen2_moe",
    Style(
        bias="qkv_bias",
        output_bias="",
        slides=lambda config, layer: layer % 2 == 0 and layer < config.max_window_layers,
    ),
    SPARSE
    | {
        "max_window_layers": 28,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
        "num_experts": 60,
        "num_experts_per_tok": 4,
        "qkv_bias": True,
    },
    other_names=LOCAL_EXPERTS,
    weights=llama_like(
        {
            **ROUTED_PARTS,
            f"{FEED_FORWARD}.shared.hidden": f"{LAYER}.mlp.shared_expert.up_proj",
            f"{FEED_FORWARD}.shared.gate": f"{LAYER}.mlp.shared_expert.gate_proj",
            f"{FEED_FORWARD}.shared.output": f"{LAYER}.mlp.shared_expert.down_proj",
            f"{FEED_FORWARD}.shared.router": f"{LAYER}.mlp.shared_expert_gate",
        }
    ),
)
"""Qwen2-MoE (Qwen Team 2024): Qwen2 with experts, one of which all tokens share."""


@dataclass(frozen=True)
class Qwen3MoeConfig(DecoderConfig):
    """Qwen3-MoE: Qwen3 with experts; the kind of every layer is the same, whatever `layer_types` says."""

    model_type = "qwen3_moe"
    style = QWEN3
    defaults = SPARSE | {"attention_bias": False}
    other_names = LOCAL_EXPERTS
    weights = llama_like(ROUTED_PARTS)

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
    defaults: ClassVar[Mapping[str, Any]] = {"sliding_window": None, "num_experts": 8, "num_experts_per_tok": 2}
    keys = LOCAL_EXPERTS
    other_names: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    weights = llama_like(expert_parts("block_sparse_moe.gate", "block_sparse_moe.experts", "w3", "w1", "w2"))

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """Rotary positions; scaled by the width of a head, they need it in the file, as the published code does."""
        rope = super().read_rope(raw)
        if isinstance(rope, Rope) and rope.rope_type in BY_WIDTH and raw.get("head_dim") is None:
            raise UsageError(f"head_dim is missing, which rope_type {rope.rope_type} needs: add it to config.json")
        return rope


SCALED: Mapping[str, Any] = {
    "rope_type": "yarn",
    "factor": 32.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}


def _stacked(tensor: str, take: Take | None = None) -> Part:
    return Part(f"{LAYER}.mlp.experts.{tensor}", take, turned=False, stacked=True, whole=True)


@dataclass(frozen=True)
class GptOssConfig(DecoderConfig):
    """gpt-oss (OpenAI 2025): experts with clamped gates, a window in every other layer, a sink in every head."""

    model_type = "gpt_oss"
    style = replace(BIASED, slides=every_other, usual_rope=SCALED)
    defaults: ClassVar[Mapping[str, Any]] = {
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
            f"{EXPERT}.gate.weight": _stacked("gate_up_proj", in_turn(0, -1)),
            f"{EXPERT}.gate.bias": _stacked("gate_up_proj_bias", in_turn(0, -1)),
            f"{EXPERT}.hidden.weight": _stacked("gate_up_proj", in_turn(1, -1)),
            f"{EXPERT}.hidden.bias": _stacked("gate_up_proj_bias", in_turn(1, -1)),
            f"{EXPERT}.output.weight": _stacked("down_proj"),
            f"{EXPERT}.output.bias": _stacked("down_proj_bias"),
        }
    )

    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0

    def attention(self) -> Attention:
        return replace(super().attention(), sink=True)

    def experts(self) -> Experts:
        """With clamped gates and every bias; shares add up to 1."""
        one = replace(self.feed_forward(), bias=True, limit=self.swiglu_limit, alpha=self.swiglu_alpha)
        return Experts(self.setting("num_experts"), self.setting("num_experts_per_tok"), one, router_bias=True)
