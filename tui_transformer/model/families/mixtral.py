"""Mixtral and gpt-oss: decoders with experts in every layer, and where files have the weights of experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import positive_float
from tui_transformer.model.description import ATTENTION_MATRICES, FEED_FORWARD_MATRICES, Attention, Clamp, Experts
from tui_transformer.model.families.decoder import EXPERT, FEED_FORWARD, LAYER, PARTS, DecoderConfig
from tui_transformer.model.families.layer_kinds import LayerRopes
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import Part, Take, WeightTable

BY_WIDTH = ("dynamic", "yarn", "longrope")
"""Kinds of rotary positions for which the published code of Mixtral reads `head_dim`, and does not work it out."""


@dataclass(frozen=True)
class MixtralConfig(DecoderConfig):
    """Mixtral (Jiang et al. 2024): Mistral with experts whose shares add up to 1 (§2.1)."""

    model_type = "mixtral"
    title = "Mixtral"
    keys: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    other_names: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    theta = 1e6
    weights = WeightTable(
        {
            **PARTS,
            f"{FEED_FORWARD}.router": f"{LAYER}.block_sparse_moe.gate",
            f"{EXPERT}.hidden": f"{LAYER}.block_sparse_moe.experts.{{}}.w3",
            f"{EXPERT}.gate": f"{LAYER}.block_sparse_moe.experts.{{}}.w1",
            f"{EXPERT}.output": f"{LAYER}.block_sparse_moe.experts.{{}}.w2",
        },
        prefix="model.",
    )

    intermediate_size: int | None = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    sliding_window: int | None = None
    num_experts: int = 8
    num_experts_per_tok: int = 2

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
    """gpt-oss (OpenAI 2025): experts with clamped gates, windows, a sink in every head."""

    model_type = "gpt_oss"
    title = "gpt-oss"
    keys: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    other_names: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    checks = dict.fromkeys(("swiglu_alpha", "swiglu_limit"), positive_float)
    theta = 150_000.0
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    weights = WeightTable(
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

    vocab_size: int = 201088
    hidden_size: int = 2880
    intermediate_size: int | None = 2880
    num_hidden_layers: int = 36
    num_attention_heads: int = 64
    num_key_value_heads: int | None = 8
    head_dim: int | None = 64
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    num_experts: int = 128
    num_experts_per_tok: int = 4
    attention_bias: bool = True
    sliding_window: int | None = 128
    layer_types: tuple[str, ...] | None = None
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """Scaled where the file says nothing."""
        said = raw.get("rope_scaling") or raw.get("rope_parameters")
        return super().read_rope(raw if said else {**raw, "rope_parameters": SCALED})

    def slides(self, layer: int) -> bool:
        """In every other layer, the first among them."""
        return layer % 2 == 0

    def attention(self) -> Attention:
        """With a sink in every head."""
        return replace(super().attention(), sink=True)

    def experts(self) -> Experts:
        """With clamped gates and every bias; shares add up to 1."""
        clamp = Clamp(self.swiglu_alpha, self.swiglu_limit)
        one = replace(self.feed_forward(), bias=FEED_FORWARD_MATRICES, clamp=clamp)
        return Experts(self.num_experts, self.num_experts_per_tok, one, router_bias=True)
