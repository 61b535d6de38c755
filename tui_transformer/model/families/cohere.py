"""Cohere (Command R, 2024): both sublayers read one norm, which has no shift; pairs of columns turn side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, positive_float, truth
from tui_transformer.model.description import ATTENTION_MATRICES, Attention, Head, Layer, Norm
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import LAYER, PARTS, GroupedConfig
from tui_transformer.model.weight_table import Part, WeightTable, halves_of_pairs


@dataclass(frozen=True)
class CohereConfig(GroupedConfig):
    """The keys of Cohere's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "cohere"
    title: ClassVar[str] = "Cohere"
    theta: ClassVar[float] = 500_000.0
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        "logit_scale": positive_float,
        **dict.fromkeys(("attention_bias", "use_qk_norm"), truth),
    }

    vocab_size: int = 256000
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    hidden_size: int = 8192
    intermediate_size: int = 22528
    num_hidden_layers: int = 40
    num_attention_heads: int = 64
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    logit_scale: float = 0.0625
    attention_bias: bool = False
    use_qk_norm: bool = False

    def final_norm(self) -> Norm:
        """Layer norm without a shift."""
        return Norm(self.rms_norm_eps, shift=False)

    def attention(self) -> Attention:
        """With a layer norm of every query and key head by weights of its own, where the file has them."""
        return replace(super().attention(), head_norm=self.final_norm() if self.use_qk_norm else None, head_norms="own")

    def layer(self) -> Layer:
        """Attention and feed-forward read the same norm."""
        return replace(super().layer(), parallel="one norm")

    def word_head(self) -> Head:
        """Logits are multiplied."""
        return replace(super().word_head(), scale=self.logit_scale)


IN_HALVES = halves_of_pairs(lambda config: config.head_width)


def by_head(tensor: str) -> Part:
    """γ of every head, which a file holds together."""
    return Part(tensor, IN_HALVES, turned=False, stacked=True)


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.query": Part(f"{LAYER}.self_attn.q_proj", IN_HALVES),
        "decoder.{}.self_attention.query_norm.{}": Part(
            f"{LAYER}.self_attn.q_norm", IN_HALVES, turned=False, stacked=True
        ),
        "decoder.{}.self_attention.key": Part(f"{LAYER}.self_attn.k_proj", IN_HALVES),
        "decoder.{}.self_attention.key_norm.{}": Part(
            f"{LAYER}.self_attn.k_norm", IN_HALVES, turned=False, stacked=True
        ),
    },
    prefix="model.",
)
COHERE = decoder_family(CohereConfig, WEIGHTS)
