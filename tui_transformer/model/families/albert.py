"""ALBERT (Lan et al. 2020): BERT with a narrow embedding and layers that share their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from tui_transformer.model.checks import Check
from tui_transformer.model.description import Layer
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.bert import BertConfig
from tui_transformer.model.families.masked_words import NarrowConfig, fitted
from tui_transformer.model.families.settings import described, layers_count
from tui_transformer.model.weight_table import Part, WeightTable


@dataclass(frozen=True)
class AlbertConfig(NarrowConfig, BertConfig):
    """Sizes and choices of an ALBERT.

    Attributes:
        groups: Layers with weights of their own; those of a group share them.
    """

    model_type: ClassVar[str] = "albert"
    keys: ClassVar[Mapping[str, str]] = {
        **BertConfig.keys,
        "table_width": "embedding_size",
        "groups": "num_hidden_groups",
    }
    fixed: ClassVar[Mapping[str, Any]] = {**BertConfig.fixed, "inner_group_num": 1}
    checks: ClassVar[Mapping[str, Check]] = {**NarrowConfig.checks, **BertConfig.checks, "groups": layers_count}

    vocab_size: int = 30000
    d_model: int = 4096
    heads: int = 64
    d_ff: int = 16384
    activation: str = "gelu_new"
    groups: int = 1

    def layers_of_the_stack(self) -> tuple[Layer, ...]:
        """Every layer with the weights of its group (Lan et al. 2020, §3.1)."""
        layer = self.layer()
        groups = [int(i / (self.layers / self.groups)) for i in range(self.layers)]
        return tuple(replace(layer, source=group) for group in groups)


GROUP = "albert.encoder.albert_layer_groups.{}.albert_layers.0"
EMBEDDINGS = "albert.embeddings"
WEIGHTS = WeightTable(
    {
        "embedding.tokens": f"{EMBEDDINGS}.word_embeddings",
        "embedding.positions": f"{EMBEDDINGS}.position_embeddings",
        "embedding.segments": f"{EMBEDDINGS}.token_type_embeddings",
        "embedding.norm": f"{EMBEDDINGS}.LayerNorm",
        "embedding.projected": "albert.encoder.embedding_hidden_mapping_in",
        "encoder.{}.self_attention.query": f"{GROUP}.attention.query",
        "encoder.{}.self_attention.key": f"{GROUP}.attention.key",
        "encoder.{}.self_attention.value": f"{GROUP}.attention.value",
        "encoder.{}.self_attention.output": f"{GROUP}.attention.dense",
        "encoder.{}.self_attention.norm": f"{GROUP}.attention.LayerNorm",
        "encoder.{}.feed_forward.hidden": f"{GROUP}.ffn",
        "encoder.{}.feed_forward.output": f"{GROUP}.ffn_output",
        "encoder.{}.feed_forward.norm": f"{GROUP}.full_layer_layer_norm",
        "output.transform.hidden": "predictions.dense",
        "output.transform.norm": "predictions.LayerNorm",
        "output.logits": Part(("predictions.decoder", "predictions")),
    },
    prefix="albert.",
)
ALBERT = Family(
    "albert", AlbertConfig.from_json, described, WEIGHTS, fitted=partial(fitted, WEIGHTS), copies=WEIGHTS.copies
)
