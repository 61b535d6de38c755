"""OPT (Zhang et al. 2022): positions from row 2 of a table; one size is post-norm and narrow at both ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.engine.backend import Host
from tui_transformer.model.base_config import counted
from tui_transformer.model.checks import Check, a_size
from tui_transformer.model.description import ATTENTION_MATRICES, Embedding, Layer, Stack, Transformer
from tui_transformer.model.families.bart import FIRST_PLACE
from tui_transformer.model.families.decoder import DecoderConfig
from tui_transformer.model.families.gpt2 import PLAIN_KEYS, PlainSettings
from tui_transformer.model.weight_table import WeightTable

LAYER = "model.decoder.layers.{}"


@dataclass(frozen=True)
class OptConfig(PlainSettings, DecoderConfig):
    """The keys of OPT's `config.json` that change what is computed; ε is not a setting."""

    model_type = "opt"
    title = "OPT"
    keys: ClassVar[Mapping[str, str]] = {
        **PLAIN_KEYS,
        "intermediate_size": "ffn_dim",
        "without_last_norm": "_remove_final_layer_norm",
    }
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "layer_norm_elementwise_affine": True}
    of_the_file = frozenset({"rms_norm_eps"})
    checks: ClassVar[Mapping[str, Check]] = {"intermediate_size": a_size}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"enable_bias": ATTENTION_MATRICES}
    feed_forward_bias = "enable_bias"
    weights = WeightTable(
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

    vocab_size: int = 50272
    pad_token_id: int | None = 1
    intermediate_size: int | None = 3072
    max_position_embeddings: int = 2048
    do_layer_norm_before: bool = True
    without_last_norm: bool = False
    word_embed_proj_dim: int | None = None
    hidden_act: str = "relu"
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

    def places(self, rows: Host) -> Host:
        """Rows 2, 3, 4 … of the table of positions."""
        return counted(rows) + FIRST_PLACE

    def embedding(self) -> Embedding:
        """Words, brought to the model's width, and learned positions."""
        rows = self.max_position_embeddings + FIRST_PLACE
        return Embedding(
            width=self.narrow, projection_bias=False, projected_first=True, positions="learned", max_length=rows
        )

    def layers(self) -> tuple[Layer, ...]:
        """Pre-norm layers; post-norm in one of the sizes."""
        place = "pre" if self.do_layer_norm_before else "post"
        return tuple(replace(layer, place=place) for layer in super().layers())

    def describe(self) -> Transformer:
        """A norm after the last layer, unless layers end with one or the file goes without; what leaves is narrow."""
        norm = self.norm() if self.do_layer_norm_before and not self.without_last_norm else None
        return replace(super().describe(), decoder=Stack(self.embedding(), self.layers(), norm, projected=self.narrow))
