"""GPT-J (Wang & Komatsuzaki 2021): sublayers side by side behind one norm, a part of every head turned in pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown
from tui_transformer.model.description import NO_MATRICES, Attention, Embedding, Head, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.gpt2 import Gpt2Config
from tui_transformer.model.families.plain_decoder import PlainDecoderConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.families.settings import a_size
from tui_transformer.model.weight_table import Part, WeightTable, halves_of_pairs


@dataclass(frozen=True)
class GptJConfig(PlainDecoderConfig):
    """The keys of GPT-J's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gptj"
    title: ClassVar[str] = "GPT-J"
    keys: ClassVar[Mapping[str, str]] = Gpt2Config.keys
    other_names: ClassVar[Mapping[str, str]] = Gpt2Config.other_names
    checks: ClassVar[Mapping[str, Check]] = {**PlainDecoderConfig.checks, "rotary_dim": a_size}

    vocab_size: int = 50400
    tie_word_embeddings: bool = False
    hidden_size: int = 4096
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    max_position_embeddings: int = 2048
    rotary_dim: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rotary_dim % 2 or self.head_width % self.rotary_dim:
            raise UsageError(
                f"rotary_dim {shown(self.rotary_dim)} is odd or does not divide the {self.head_width} columns of a head"
                ": this is not supported"
            )

    def embedding(self) -> Embedding:
        """Words alone."""
        return Embedding()

    def attention(self) -> Attention:
        """With rotary positions and without biases."""
        rotary = Rope().rotary(self.rotary_dim)
        return replace(super().attention(), bias=NO_MATRICES, rotary=rotary)

    def layers(self) -> tuple[Layer, ...]:
        """Both sublayers read the same norm."""
        return tuple(replace(layer, parallel="one norm") for layer in super().layers())

    def word_head(self) -> Head:
        """With a bias for every word."""
        return replace(super().word_head(), bias=True)


LAYER = "transformer.h.{}"
IN_HALVES = halves_of_pairs(lambda config: config.rotary_dim)
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""

WEIGHTS = WeightTable(
    {
        "embedding.tokens": "transformer.wte",
        "decoder.{}.self_attention.norm": f"{LAYER}.ln_1",
        "decoder.{}.self_attention.query": Part(f"{LAYER}.attn.q_proj", IN_HALVES),
        "decoder.{}.self_attention.key": Part(f"{LAYER}.attn.k_proj", IN_HALVES),
        "decoder.{}.self_attention.value": f"{LAYER}.attn.v_proj",
        "decoder.{}.self_attention.output": f"{LAYER}.attn.out_proj",
        "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.fc_in",
        "decoder.{}.feed_forward.output": f"{LAYER}.mlp.fc_out",
        "decoder.norm": "transformer.ln_f",
        "output.logits": "lm_head",
    },
    prefix="transformer.",
)
GPTJ = decoder_family(GptJConfig, WEIGHTS)
