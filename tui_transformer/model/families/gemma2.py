"""Gemma 2 (Gemma Team 2024): norms on both sides of a sublayer, soft caps, every other layer with a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, positive_float
from tui_transformer.model.description import Attention, Head, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.gemma import GemmaBaseConfig, less_one
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.llama import LAYER, PARTS
from tui_transformer.model.families.settings import a_size, check_divides, optional
from tui_transformer.model.families.windowed import WindowedConfig
from tui_transformer.model.layers import divided
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class Gemma2Config(GemmaBaseConfig, WindowedConfig):
    """The keys of Gemma 2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gemma2"
    title: ClassVar[str] = "Gemma 2"
    keys: ClassVar[Mapping[str, str]] = {"hidden_act": "hidden_activation"}
    checks: ClassVar[Mapping[str, Check]] = {
        **WindowedConfig.checks,
        **GemmaBaseConfig.checks,
        "query_pre_attn_scalar": a_size,
        **dict.fromkeys(("final_logit_softcapping", "attn_logit_softcapping"), optional(positive_float)),
    }

    vocab_size: int = 256000
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 8192
    query_pre_attn_scalar: int = 256
    final_logit_softcapping: float | None = 30.0
    attn_logit_softcapping: float | None = 50.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)

    def usual_kind(self, layer: int) -> str:
        """A window in every other layer, the first among them."""
        return FULL if layer % 2 else SLIDING

    def attention(self) -> Attention:
        """Scores divided by a constant of the file and capped (Gemma Team 2024, §2)."""
        scale = divided(self.query_pre_attn_scalar)
        return replace(super().attention(), scale=scale, cap=self.attn_logit_softcapping)

    def layer(self) -> Layer:
        """With a norm before and after every sublayer."""
        return replace(super().layer(), place="both")

    def word_head(self) -> Head:
        """With capped logits."""
        return replace(super().word_head(), cap=self.final_logit_softcapping)


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.norm": less_one(f"{LAYER}.input_layernorm"),
        "decoder.{}.self_attention.output_norm": less_one(f"{LAYER}.post_attention_layernorm"),
        "decoder.{}.feed_forward.norm": less_one(f"{LAYER}.pre_feedforward_layernorm"),
        "decoder.{}.feed_forward.output_norm": less_one(f"{LAYER}.post_feedforward_layernorm"),
        "decoder.norm": less_one("model.norm"),
    },
    prefix="model.",
)
GEMMA2 = decoder_family(Gemma2Config, WEIGHTS)
