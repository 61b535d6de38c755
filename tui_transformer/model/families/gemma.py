"""Gemma (Gemma Team 2024, 2025): wide heads, embeddings times √d_model, and γ − 1 of every norm in the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.model.description import ATTENTION_MATRICES, Attention, Embedding
from tui_transformer.model.families.decoder import LAYER, PARTS, DecoderConfig, less_one
from tui_transformer.model.families.layer_kinds import LayerRopes, read_layer_ropes
from tui_transformer.model.weight_table import Part, WeightTable


@dataclass(frozen=True)
class GemmaSettings:
    """What Gemma 1, 2 and 3 share."""

    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "use_bidirectional_attention": None}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}

    hidden_size: int = 3072
    tie_word_embeddings: bool = True
    head_dim: int = 256
    hidden_act: str = "gelu_pytorch_tanh"
    attention_bias: bool = False

    def embedding(self) -> Embedding:
        """Words, times √d_model."""
        return Embedding(scale=math.sqrt(self.hidden_size))


def _said(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "use_bidirectional_attention": raw.get("use_bidirectional_attention") or None}


@dataclass(frozen=True)
class GemmaConfig(GemmaSettings, DecoderConfig):
    """Gemma."""

    model_type = "gemma"
    title = "Gemma"
    weights = WeightTable(
        {
            **PARTS,
            "decoder.{}.self_attention.norm": less_one(f"{LAYER}.input_layernorm"),
            "decoder.{}.feed_forward.norm": less_one(f"{LAYER}.post_attention_layernorm"),
            "decoder.norm": less_one("model.norm"),
        },
        prefix="model.",
    )

    vocab_size: int = 256000
    intermediate_size: int | None = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    max_position_embeddings: int = 8192

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; "gelu" of old files means its approximation by tanh."""
        approximated = {"hidden_act": "gelu_pytorch_tanh"} if raw.get("hidden_act") == "gelu" else {}
        return super().from_json({**_said(raw), **approximated})


BOTH_SIDES: Mapping[str, str | Part] = {
    **PARTS,
    "decoder.{}.self_attention.norm": less_one(f"{LAYER}.input_layernorm"),
    "decoder.{}.self_attention.output_norm": less_one(f"{LAYER}.post_attention_layernorm"),
    "decoder.{}.feed_forward.norm": less_one(f"{LAYER}.pre_feedforward_layernorm"),
    "decoder.{}.feed_forward.output_norm": less_one(f"{LAYER}.post_feedforward_layernorm"),
    "decoder.norm": less_one("model.norm"),
}


@dataclass(frozen=True)
class Gemma2Config(GemmaSettings, DecoderConfig):
    """Gemma 2: norms on both sides of a sublayer, soft caps, scores divided by a constant (Gemma Team 2024, §2)."""

    model_type = "gemma2"
    title = "Gemma 2"
    keys: ClassVar[Mapping[str, str]] = {"hidden_act": "hidden_activation"}
    place = "both"
    heads_divide = True
    weights = WeightTable(BOTH_SIDES, prefix="model.")

    vocab_size: int = 256000
    hidden_size: int = 2304
    intermediate_size: int | None = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 8192
    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None
    query_pre_attn_scalar: int = 256
    final_logit_softcapping: float | None = 30.0
    attn_logit_softcapping: float | None = 50.0

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        return super().from_json(_said(raw))

    def slides(self, layer: int) -> bool:
        """In every other layer, the first among them."""
        return layer % 2 == 0


@dataclass(frozen=True)
class Gemma3Config(GemmaSettings, DecoderConfig):
    """Gemma 3, the text model: Gemma 2 with normalised heads, five layers with a window to each without."""

    model_type = "gemma3_text"
    title = "Gemma 3"
    keys = Gemma2Config.keys
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "attn_logit_softcapping": None}
    place = "both"
    heads_divide = True
    head_norms = "alike"
    weights = WeightTable(
        {
            **BOTH_SIDES,
            "decoder.{}.self_attention.query_norm": less_one(f"{LAYER}.self_attn.q_norm"),
            "decoder.{}.self_attention.key_norm": less_one(f"{LAYER}.self_attn.k_norm"),
        },
        prefix="model.",
    )

    vocab_size: int = 262208
    hidden_size: int = 2304
    intermediate_size: int | None = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 131072
    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None
    query_pre_attn_scalar: int = 256
    final_logit_softcapping: float | None = None
    attn_logit_softcapping: float | None = None
    sliding_window_pattern: int = 6
    use_bidirectional_attention: bool | None = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        return super().from_json(_said(raw))

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> LayerRopes:
        """θ of layers with a window is `rope_local_base_freq` in old files."""
        return read_layer_ropes(raw, 1e6, 1e4, "rope_local_base_freq", cls.max_position_embeddings)

    def slides(self, layer: int) -> bool:
        """But for every sixth layer, or as `sliding_window_pattern` says (Gemma Team 2025, §2)."""
        return (layer + 1) % self.sliding_window_pattern != 0

    @property
    def window(self) -> int | None:
        """How many keys a query of a layer with a window sees; where it sees later ones too, half on either side."""
        window = self.sliding_window
        return window // 2 + 1 if window and self.use_bidirectional_attention else window

    def attention(self) -> Attention:
        """Later keys are seen where asked for."""
        return replace(super().attention(), causal=not self.use_bidirectional_attention)
