"""Gemma 2 (Gemma Team 2024): norms on both sides of a sublayer, soft caps, every other layer with a window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.model.checks import Check, positive, truth
from tui_transformer.model.description import ATTENTION_MATRICES, NO_MATRICES, Attention, Embedding, Head, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING, check_layer_kinds, layer_kinds
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.families.settings import a_size, an_activation, check_divides, optional
from tui_transformer.model.layers import divided
from tui_transformer.model.weight_table import Part, WeightTable


@dataclass(frozen=True)
class Gemma2Config(GroupedConfig):
    """The keys of Gemma 2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gemma2"
    title: ClassVar[str] = "Gemma 2"
    keys: ClassVar[Mapping[str, str]] = {"hidden_act": "hidden_activation"}
    fixed: ClassVar[Mapping[str, Any]] = {**GroupedConfig.fixed, "use_bidirectional_attention": None}
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        "head_dim": a_size,
        "hidden_act": an_activation,
        "attention_bias": truth,
        "query_pre_attn_scalar": positive,
        "sliding_window": optional(a_size),
        "layer_types": optional(layer_kinds),
        **dict.fromkeys(("final_logit_softcapping", "attn_logit_softcapping"), optional(positive)),
    }

    vocab_size: int = 256000
    tie_word_embeddings: bool = True
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    attention_bias: bool = False
    query_pre_attn_scalar: float = 256
    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None
    final_logit_softcapping: float | None = 30.0
    attn_logit_softcapping: float | None = 50.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        check_layer_kinds(self.layer_types, self.num_hidden_layers, self.sliding_window)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        kinds = raw.get("layer_types")
        return super().from_json({**raw, "layer_types": tuple(map(str, kinds)) if isinstance(kinds, list) else kinds})

    @property
    def biased(self) -> frozenset[str]:
        """The matrices of the attention that have a bias."""
        return ATTENTION_MATRICES if self.attention_bias else NO_MATRICES

    @property
    def windows(self) -> tuple[int | None, ...]:
        """A window in every other layer, the first among them, or as `layer_types` says."""
        layers = range(self.num_hidden_layers)
        kinds = self.layer_types or tuple(FULL if layer % 2 else SLIDING for layer in layers)
        return tuple(self.sliding_window if kind == SLIDING else None for kind in kinds)

    def embedding(self) -> Embedding:
        """Words, times √d_model."""
        return Embedding(scale=math.sqrt(self.hidden_size))

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
        "decoder.{}.self_attention.norm": Part(f"{LAYER}.input_layernorm", plus=1.0),
        "decoder.{}.self_attention.output_norm": Part(f"{LAYER}.post_attention_layernorm", plus=1.0),
        "decoder.{}.feed_forward.norm": Part(f"{LAYER}.pre_feedforward_layernorm", plus=1.0),
        "decoder.{}.feed_forward.output_norm": Part(f"{LAYER}.post_feedforward_layernorm", plus=1.0),
        "decoder.norm": Part("model.norm", plus=1.0),
    },
    prefix="model.",
)
GEMMA2 = decoder_family(Gemma2Config, WEIGHTS)
