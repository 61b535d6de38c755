"""OLMo 2 (OLMo Team 2024): norms behind the sublayers, and of all query and of all key heads together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import ATTENTION_MATRICES, Attention, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class OlmoConfig(GroupedConfig):
    """The keys that `config.json` of OLMo 2 and 3 share."""

    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    checks: ClassVar[Mapping[str, Check]] = {**GroupedConfig.checks, "attention_bias": truth}

    vocab_size: int = 50304
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 1
    attention_bias: bool = False

    def attention(self) -> Attention:
        """With an RMS norm of all query heads, and of all key heads (OLMo Team 2024, §3.2)."""
        return replace(super().attention(), head_norm=self.final_norm(), head_norms="together")

    def layer(self) -> Layer:
        """Sublayers are x + norm(f(x)) (OLMo Team 2024, §3.2)."""
        return replace(super().layer(), place="output")


@dataclass(frozen=True)
class Olmo2Config(OlmoConfig):
    """The keys of OLMo 2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "olmo2"
    title: ClassVar[str] = "OLMo 2"


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.output_norm": f"{LAYER}.post_attention_layernorm",
        "decoder.{}.feed_forward.output_norm": f"{LAYER}.post_feedforward_layernorm",
    },
    prefix="model.",
)
OLMO2 = decoder_family(Olmo2Config, WEIGHTS)
