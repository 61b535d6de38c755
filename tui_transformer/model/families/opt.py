"""OPT (Zhang et al. 2022): positions from row 2 of a table; one size is post-norm and narrow at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import (
    NO_MATRICES,
    Embedding,
    Layer,
    Stack,
    Transformer,
)
from tui_transformer.model.families.bart import FIRST_PLACE, places
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.plain_decoder import PlainDecoderConfig
from tui_transformer.model.families.settings import a_size, optional
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class OptConfig(PlainDecoderConfig):
    """The keys of OPT's `config.json` that change what is computed; ε is not a setting."""

    model_type: ClassVar[str] = "opt"
    title: ClassVar[str] = "OPT"
    fixed: ClassVar[Mapping[str, Any]] = {**PlainDecoderConfig.fixed, "layer_norm_elementwise_affine": True}
    of_the_file: ClassVar[frozenset[str]] = PlainDecoderConfig.of_the_file | {"layer_norm_epsilon"}
    keys: ClassVar[Mapping[str, str]] = {
        "intermediate_size": "ffn_dim",
        "without_last_norm": "_remove_final_layer_norm",
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **PlainDecoderConfig.checks,
        "intermediate_size": a_size,
        "word_embed_proj_dim": optional(a_size),
        **dict.fromkeys(("do_layer_norm_before", "without_last_norm", "enable_bias"), truth),
    }

    vocab_size: int = 50272
    pad_token_id: int | None = 1
    intermediate_size: int = 3072
    max_position_embeddings: int = 2048
    do_layer_norm_before: bool = True
    without_last_norm: bool = False
    word_embed_proj_dim: int | None = None
    activation_function: str = "relu"
    enable_bias: bool = True

    @property
    def end_is_padding(self) -> bool:
        """A pad ID at the end is read: texts for OPT may end with it, and no token before sees it.

        A classifier takes the last token that is none, as the published code does.
        """
        return self.labels is not None

    @property
    def narrow(self) -> int:
        """Width of the embedding table; 0 where it is the model's."""
        width = self.word_embed_proj_dim or self.hidden_size
        return 0 if width == self.hidden_size else width

    def embedding(self) -> Embedding:
        """Words, brought to the model's width, and learned positions."""
        rows = self.max_position_embeddings + FIRST_PLACE
        return Embedding(
            width=self.narrow, projection_bias=False, projected_first=True, positions="learned", max_length=rows
        )

    def layers(self) -> tuple[Layer, ...]:
        """Pre-norm layers; post-norm in one of the sizes; biases everywhere or nowhere."""
        attention, feed_forward = self.attention(), self.feed_forward()
        if not self.enable_bias:
            attention, feed_forward = replace(attention, bias=NO_MATRICES), replace(feed_forward, bias=NO_MATRICES)
        layer = Layer(attention, feed_forward, self.final_norm(), "pre" if self.do_layer_norm_before else "post")
        return (layer,) * self.num_hidden_layers

    def describe(self) -> Transformer:
        """A norm after the last layer, unless layers end with one or the file goes without; what leaves is narrow."""
        norm = self.final_norm() if self.do_layer_norm_before and not self.without_last_norm else None
        return replace(super().describe(), decoder=Stack(self.embedding(), self.layers(), norm, projected=self.narrow))


LAYER = "model.decoder.layers.{}"
WEIGHTS = WeightTable(
    {
        "embedding.tokens": "model.decoder.embed_tokens",
        "embedding.projected": "model.decoder.project_in",
        "embedding.positions": "model.decoder.embed_positions",
        "decoder.{}.self_attention.norm": f"{LAYER}.self_attn_layer_norm",
        "decoder.{}.self_attention.query": f"{LAYER}.self_attn.q_proj",
        "decoder.{}.self_attention.key": f"{LAYER}.self_attn.k_proj",
        "decoder.{}.self_attention.value": f"{LAYER}.self_attn.v_proj",
        "decoder.{}.self_attention.output": f"{LAYER}.self_attn.out_proj",
        "decoder.{}.feed_forward.norm": f"{LAYER}.final_layer_norm",
        "decoder.{}.feed_forward.hidden": f"{LAYER}.fc1",
        "decoder.{}.feed_forward.output": f"{LAYER}.fc2",
        "decoder.norm": "model.decoder.final_layer_norm",
        "decoder.projected": "model.decoder.project_out",
        "output.logits": "lm_head",
    },
    prefix="model.",
)
OPT = replace(decoder_family(OptConfig, WEIGHTS), places=places)
