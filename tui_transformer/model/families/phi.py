"""Phi (Gunasekar et al. 2023; Javaheripi et al. 2023): both sublayers read one norm, and every matrix has a bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import (
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    Attention,
    FeedForward,
    Head,
    Layer,
)
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import WeightTable

TURNED = 0.5
"""The part of a head that is turned where the file says nothing."""


@dataclass(frozen=True)
class PhiConfig(GroupedConfig):
    """The keys of Phi's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "phi"
    title: ClassVar[str] = "Phi"
    turned_in_part: ClassVar[bool] = True
    whole: ClassVar[float] = TURNED
    gated: ClassVar[bool] = False
    norm_kind: ClassVar[str] = "layer"
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    checks: ClassVar[Mapping[str, Check]] = {**GroupedConfig.checks, "qk_layernorm": truth}

    vocab_size: int = 51200
    hidden_size: int = 2048
    intermediate_size: int = 8192
    num_hidden_layers: int = 24
    hidden_act: str = "gelu_new"
    rms_norm_eps: float = 1e-5
    qk_layernorm: bool = False
    rope_parameters: Rope | LayerRopes = field(default_factory=lambda: Rope(partial_rotary_factor=TURNED))

    @property
    def biased(self) -> frozenset[str]:
        """Every matrix of the attention."""
        return ATTENTION_MATRICES

    def attention(self) -> Attention:
        """With a layer norm of every query and key head, where the file has them."""
        return replace(super().attention(), head_norm=self.final_norm() if self.qk_layernorm else None)

    def feed_forward(self) -> FeedForward:
        """With every bias."""
        return replace(super().feed_forward(), bias=FEED_FORWARD_MATRICES)

    def layer(self) -> Layer:
        """Attention and feed-forward read the same norm."""
        return replace(super().layer(), parallel="one norm")

    def word_head(self) -> Head:
        """With a bias for every word."""
        return replace(super().word_head(), bias=True)


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.query_norm": f"{LAYER}.self_attn.q_layernorm",
        "decoder.{}.self_attention.key_norm": f"{LAYER}.self_attn.k_layernorm",
        "decoder.{}.self_attention.output": f"{LAYER}.self_attn.dense",
        "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.fc1",
        "decoder.{}.feed_forward.output": f"{LAYER}.mlp.fc2",
        "decoder.norm": "model.final_layernorm",
    },
    prefix="model.",
)
PHI = decoder_family(PhiConfig, WEIGHTS)
