"""GLM-4-0414 (Zhipu AI 2025): GLM with a norm before and after every sublayer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.description import Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.glm import FUSED, GlmConfig
from tui_transformer.model.families.llama import LAYER
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class Glm4Config(GlmConfig):
    """The keys of GLM-4's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "glm4"
    title: ClassVar[str] = "GLM-4"

    def layer(self) -> Layer:
        """With a norm before and after every sublayer."""
        return replace(super().layer(), place="both")


WEIGHTS = WeightTable(
    {
        **FUSED,
        "decoder.{}.self_attention.output_norm": f"{LAYER}.post_self_attn_layernorm",
        "decoder.{}.feed_forward.output_norm": f"{LAYER}.post_mlp_layernorm",
    },
    prefix="model.",
)
GLM4 = decoder_family(Glm4Config, WEIGHTS)
