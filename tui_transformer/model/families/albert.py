"""ALBERT (Lan et al. 2020): BERT with a narrow embedding and layers that share their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import layers_count
from tui_transformer.model.description import Layer
from tui_transformer.model.families.bert import EncoderConfig
from tui_transformer.model.weight_table import Part, WeightTable, layer_parts

GROUP_LAYER: dict[str, str | Part] = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "output": "attention.dense",
    "norm": "attention.LayerNorm",
    "hidden": "ffn",
    "down": "ffn_output",
    "feed_norm": "full_layer_layer_norm",
}
GROUPS = "albert.encoder.albert_layer_groups.{}.albert_layers"
EMBEDDINGS = "albert.embeddings"


@dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """Sizes and choices of an ALBERT.

    Attributes:
        table_width: Width of the embedding.
        groups: Groups of layers with weights of their own; the layers of a group share them.
        inner: Layers that a group has one after the other, each with its own.
    """

    model_type = "albert"
    keys: ClassVar[Mapping[str, str]] = {
        **EncoderConfig.keys,
        "groups": "num_hidden_groups",
        "inner": "inner_group_num",
    }
    checks = dict.fromkeys(("groups", "inner"), layers_count)
    weights = WeightTable(
        {
            "embedding.tokens": f"{EMBEDDINGS}.word_embeddings",
            "embedding.positions": f"{EMBEDDINGS}.position_embeddings",
            "embedding.segments": f"{EMBEDDINGS}.token_type_embeddings",
            "embedding.norm": f"{EMBEDDINGS}.LayerNorm",
            "embedding.projected": "albert.encoder.embedding_hidden_mapping_in",
            **layer_parts("encoder.{}", f"{GROUPS}.0", **GROUP_LAYER),
            **layer_parts("encoder.{}.{}", f"{GROUPS}.{{}}", **GROUP_LAYER),
            "output.transform.hidden": "predictions.dense",
            "output.transform.norm": "predictions.LayerNorm",
            "output.logits": Part(("predictions.decoder", "predictions")),
        },
        prefix="albert.",
    )

    vocab_size: int = 30000
    d_model: int = 4096
    heads: int = 64
    d_ff: int = 16384
    activation: str = "gelu_new"
    table_width: int = 128
    groups: int = 1
    inner: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        layers_count(f"{self.key('layers')} · {self.key('inner')}", self.layers * self.inner)

    @property
    def projected(self) -> bool:
        return True

    def layers_of_the_stack(self) -> tuple[Layer, ...]:
        """Every layer with the weights of its group (Lan et al. 2020, §3.1)."""
        layer = self.layer()
        groups = [int(i / (self.layers / self.groups)) for i in range(self.layers)]
        if self.inner == 1:
            return tuple(replace(layer, source=str(group)) for group in groups)
        return tuple(replace(layer, source=f"{group}.{place}") for group in groups for place in range(self.inner))
