"""ALBERT (Lan et al. 2020), whose layers share weights; DeBERTa-v2 and v3 (He et al. 2021): scores by distance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import LARGEST_SIZE, Check, layers_count, one_of, shown, size_up_to
from tui_transformer.model.description import Embedding, Layer, Norm, Transformer
from tui_transformer.model.families.bert import CLS, EncoderConfig, encoder_table, word_head
from tui_transformer.model.labels import of_encoder
from tui_transformer.model.layers import Disentangled, divided
from tui_transformer.model.weight_table import HEAD, Part, layer_parts
from tui_transformer.records import dataclass, replace

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
GROUPS = "encoder.albert_layer_groups.{}.albert_layers"


@dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """Sizes and choices of an ALBERT.

    Attributes:
        groups: Groups of layers with weights of their own; the layers of a group share them.
        inner: Layers that a group has one after the other, each with its own.
    """

    model_type = "albert"
    projected = True
    keys: ClassVar[Mapping[str, str]] = {
        **EncoderConfig.keys,
        "groups": "num_hidden_groups",
        "inner": "inner_group_num",
    }
    checks = dict.fromkeys(("groups", "inner"), layers_count)
    layouts = of_encoder("albert.pooler")
    weights = encoder_table(
        "albert.",
        word_head("predictions.dense", "predictions.LayerNorm", ("predictions.decoder", "predictions")),
        {
            "embedding.projected": "albert.encoder.embedding_hidden_mapping_in",
            **layer_parts("encoder.{}.{}", f"albert.{GROUPS}.{{}}", **GROUP_LAYER),
        },
        layer=f"{GROUPS}.0",
        **GROUP_LAYER,
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

    def layers_of_the_stack(self) -> tuple[Layer, ...]:
        """Every layer with the weights of its group (Lan et al. 2020, §3.1)."""
        layer = self.layer()
        groups = [int(i / (self.layers / self.groups)) for i in range(self.layers)]
        if self.inner == 1:
            return tuple(replace(layer, source=str(group)) for group in groups)
        return tuple(replace(layer, source=f"{group}.{place}") for group in groups for place in range(self.inner))


SIDES: Mapping[str, str] = {"c2p": "query", "p2c": "key"}
"""Names of the comparisons with distances in `pos_att_type` → whose content is compared."""

SAME = ("embedding_size", "attention_head_size")
"""Settings that may say only what follows from the others."""

LAYER, AUTHORS = "deberta.encoder.layer.{}.attention.self", "lm_predictions.lm_head"


@dataclass(frozen=True)
class DebertaConfig(EncoderConfig):
    """Sizes and choices of a DeBERTa-v2.

    Attributes:
        relative_attention: Scores compare with distances.
        max_relative_positions: The farthest distance; below 1 for as many as positions.
        position_buckets: Rows of distances on either side, where far ones share rows; below 1 for one a distance.
        share_att_key: Distances are projected by the matrices of the tokens.
        pos_att_type: What is compared with distances, of `SIDES`.
        norm_rel_ebd: "layer_norm" for a norm of the vectors of distances, or "none".
        position_biased_input: Positions are added to the words.
    """

    model_type = "deberta-v2"
    title = "DeBERTa-v2"
    fixed: ClassVar[Mapping[str, Any]] = {**EncoderConfig.fixed, "conv_kernel_size": 0}
    checks: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(("max_relative_positions", "position_buckets"), size_up_to(LARGEST_SIZE, -1)),
        "segments": size_up_to(LARGEST_SIZE, 0),
        "norm_rel_ebd": one_of(("none", "layer_norm")),
    }
    layouts = of_encoder("pooler.dense", "gelu")
    weights = encoder_table(
        "deberta.",
        word_head(
            (f"{CLS}.transform.dense", f"{AUTHORS}.dense"),
            (f"{CLS}.transform.LayerNorm", f"{AUTHORS}.LayerNorm"),
            (f"{CLS}.decoder", CLS, AUTHORS),
        ),
        {
            "encoder.distances": Part("deberta.encoder.rel_embeddings", turned=False),
            "encoder.distances_norm": "deberta.encoder.LayerNorm",
            "encoder.{}.self_attention.distance_key": f"{LAYER}.pos_key_proj",
            "encoder.{}.self_attention.distance_query": f"{LAYER}.pos_query_proj",
        },
        query="attention.self.query_proj",
        key="attention.self.key_proj",
        value="attention.self.value_proj",
    )

    vocab_size: int = 128100
    d_model: int = 1536
    layers: int = 24
    heads: int = 24
    d_ff: int = 6144
    segments: int = 0
    norm_epsilon: float = 1e-7
    relative_attention: bool = False
    max_relative_positions: int = -1
    position_buckets: int = -1
    share_att_key: bool = False
    pos_att_type: tuple[str, ...] = ()
    norm_rel_ebd: str = "none"
    position_biased_input: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not set(self.pos_att_type) <= SIDES.keys():
            raise UsageError(f"pos_att_type {shown(self.pos_att_type)} is not known: use {', '.join(SIDES)}")
        if self.position_buckets > 0 and self.farthest <= self.position_buckets // 2 + 1:
            near = f"position_buckets {self.position_buckets}"
            raise UsageError(f"{near} leave no far distance: max_relative_positions is {self.farthest}")
        if self.position_buckets == 1:
            raise UsageError("position_buckets 1 cannot be halved: use 2 or more, or -1 for none")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; names may be in a list or stand with | between them."""
        kinds = raw.get("pos_att_type")
        named = kinds.lower().split("|") if isinstance(kinds, str) else kinds or ()
        if not isinstance(named, list | tuple):
            raise UsageError(f"pos_att_type {shown(kinds)} is not a list of {', '.join(SIDES)}")
        norms = [name.strip() for name in str(raw.get("norm_rel_ebd") or "none").lower().split("|")]
        given = {
            "pos_att_type": tuple(dict.fromkeys(str(name).strip() for name in named)),
            "norm_rel_ebd": "layer_norm" if "layer_norm" in norms else "|".join(norms),
        }
        config = super().from_json({**raw, **given})
        for key, value in zip(SAME, (config.d_model, config.d_model // config.heads), strict=True):
            if raw.get(key, value) != value:
                raise UsageError(f"{key} {shown(raw[key])} is not supported: only {value}, as the other sizes say, is")
        return config

    def fitted(self, names: frozenset[str]) -> Self:
        """The head of the authors has no matrix: its logits use the embedding table again, whatever the file says."""
        config = super().fitted(names)
        authors = f"{AUTHORS}.dense.weight" in names and not self.weights.has(HEAD, names)
        return replace(config, tie_output=config.tie_output or authors)

    @property
    def farthest(self) -> int:
        """The farthest distance, in tokens."""
        return self.position_rows if self.max_relative_positions < 1 else self.max_relative_positions

    @property
    def span(self) -> int:
        """Rows of distances on either side."""
        return self.position_buckets if self.position_buckets > 0 else self.farthest

    def describe(self) -> Transformer:
        what = super().describe()
        if not self.relative_attention or what.encoder is None:
            return what
        norm = Norm(self.norm_epsilon) if self.norm_rel_ebd == "layer_norm" else None
        return replace(what, encoder=replace(what.encoder, distances=2 * self.span, distances_norm=norm))

    def embedding(self) -> Embedding:
        embedding = super().embedding()
        return embedding if self.position_biased_input else replace(embedding, positions="none", max_length=0)

    def layer(self) -> Layer:
        """BERT's layer; scores of all kinds are divided by √(d_k · their number) (He et al. 2021, equation 4)."""
        layer, kinds = super().layer(), 1 + len(self.pos_att_type)
        width = layer.attention.width * kinds
        bias = None
        if self.relative_attention and self.pos_att_type:
            bias = Disentangled(
                vectors="encoder.distances_norm" if self.norm_rel_ebd == "layer_norm" else "encoder.distances",
                sides=tuple(side for kind, side in SIDES.items() if kind in self.pos_att_type),
                factor=1.0 / math.sqrt(width),
                shared=self.share_att_key,
                span=self.span,
                buckets=max(self.position_buckets, 0),
                farthest=self.farthest,
            )
        return replace(layer, attention=replace(layer.attention, scale=divided(width), score_bias=bias))
