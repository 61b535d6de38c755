"""GLM-4 (GLM Team 2024) in its newer files: Llama with half of every head turned, in pairs of columns side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, truth
from tui_transformer.model.description import QUERY_KEY_VALUE
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.families.phi3 import gated
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import Part, WeightTable, halves_of_pairs

TURNED = 0.5
"""The part of a head that is turned where the file says nothing."""


@dataclass(frozen=True)
class GlmConfig(GroupedConfig):
    """The keys of GLM's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "glm"
    title: ClassVar[str] = "GLM"
    turned_in_part: ClassVar[bool] = True
    whole: ClassVar[float] = TURNED
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": QUERY_KEY_VALUE}
    checks: ClassVar[Mapping[str, Check]] = {**GroupedConfig.checks, "attention_bias": truth}

    vocab_size: int = 151552
    pad_token_id: int | None = 151329
    intermediate_size: int = 13696
    num_hidden_layers: int = 40
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1.5625e-7
    attention_bias: bool = True
    rope_parameters: Rope | LayerRopes = field(default_factory=lambda: Rope(partial_rotary_factor=TURNED))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_width % self.turned:
            raise UsageError(
                f"{shown(self.turned)} columns that are turned do not divide head_dim {shown(self.head_width)}: "
                "this is not supported"
            )

    @property
    def turned(self) -> int:
        """Columns of a head that are turned."""
        (rope,) = self.ropes
        return rope.width(self.head_width)


IN_HALVES = halves_of_pairs(lambda config: config.turned)
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""

FUSED: Mapping[str, str | Part] = {
    **PARTS,
    "decoder.{}.self_attention.query": Part(f"{LAYER}.self_attn.q_proj", IN_HALVES),
    "decoder.{}.self_attention.key": Part(f"{LAYER}.self_attn.k_proj", IN_HALVES),
    "decoder.{}.feed_forward.gate": gated(0),
    "decoder.{}.feed_forward.hidden": gated(1),
}
WEIGHTS = WeightTable(FUSED, prefix="model.")
GLM = decoder_family(GlmConfig, WEIGHTS)
