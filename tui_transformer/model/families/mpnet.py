"""MPNet (Song et al. 2020): RoBERTa's places and head, without segments, and scores with a bias by distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.model.description import Layer
from tui_transformer.model.families.base import unpadded
from tui_transformer.model.families.bert import KEYS
from tui_transformer.model.families.masked_words import MaskedWordConfig, encoder_family
from tui_transformer.model.score_biases import RelativePositions
from tui_transformer.model.weight_table import Part, WeightTable

BUCKETS, LIMIT = 32, 128
"""Distances have so many buckets, whatever the table has rows; farther keys share the last (as published)."""

FIRST_ROW = 2
"""Of the table of positions, whatever the pad ID."""

BIAS = RelativePositions("encoder.biased.weight", BUCKETS, LIMIT, bidirectional=True, in_order=True)


@dataclass(frozen=True)
class MPNetConfig(MaskedWordConfig):
    """Sizes and choices of an MPNet."""

    model_type: ClassVar[str] = "mpnet"
    title: ClassVar[str] = "MPNet"
    keys: ClassVar[Mapping[str, str]] = {field: key for field, key in KEYS.items() if field != "segments"}
    of_the_file: ClassVar[frozenset[str]] = MaskedWordConfig.of_the_file | {"sinusoidal", "segments"}
    fixed: ClassVar[Mapping[str, Any]] = {**MaskedWordConfig.fixed, "relative_attention_num_buckets": BUCKETS}

    vocab_size: int = 30527
    pad_id: int | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_length < 1:
            raise UsageError(f"max_position_embeddings {self.position_rows} leaves no position behind the first two")

    @property
    def max_length(self) -> int:
        """The first two rows of the table are not for tokens."""
        return self.position_rows - FIRST_ROW

    @property
    def head_activation(self) -> str:
        """GELU, whatever the layers have."""
        return "gelu"

    def layer(self) -> Layer:
        """BERT's layer; all share one table of biases."""
        layer = super().layer()
        return replace(layer, attention=replace(layer.attention, score_bias=BIAS))


def places(rows: Host, _: int | None) -> Host:
    """RoBERTa's, as if the pad ID were 1."""
    return unpadded(rows, FIRST_ROW - 1)


LAYER = "mpnet.encoder.layer.{}"
WEIGHTS = WeightTable(
    {
        "embedding.tokens": "mpnet.embeddings.word_embeddings",
        "embedding.positions": "mpnet.embeddings.position_embeddings",
        "embedding.norm": "mpnet.embeddings.LayerNorm",
        "encoder.biased": "mpnet.encoder.relative_attention_bias",
        "encoder.{}.self_attention.query": f"{LAYER}.attention.attn.q",
        "encoder.{}.self_attention.key": f"{LAYER}.attention.attn.k",
        "encoder.{}.self_attention.value": f"{LAYER}.attention.attn.v",
        "encoder.{}.self_attention.output": f"{LAYER}.attention.attn.o",
        "encoder.{}.self_attention.norm": f"{LAYER}.attention.LayerNorm",
        "encoder.{}.feed_forward.hidden": f"{LAYER}.intermediate.dense",
        "encoder.{}.feed_forward.output": f"{LAYER}.output.dense",
        "encoder.{}.feed_forward.norm": f"{LAYER}.output.LayerNorm",
        "output.transform.hidden": "lm_head.dense",
        "output.transform.norm": "lm_head.layer_norm",
        "output.logits": Part(("lm_head.decoder", "lm_head")),
    },
    prefix="mpnet.",
)
MPNET = encoder_family(MPNetConfig, WEIGHTS, places)
