"""Falcon (Almazrouei et al. 2023): sublayers side by side, one key head or few, rotary positions or distances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, truth
from tui_transformer.model.description import (
    ATTENTION_MATRICES,
    Attention,
    Layer,
)
from tui_transformer.model.families.bloom import LAYER, PARTS
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.llama import GroupedConfig
from tui_transformer.model.score_biases import Distances, alibi_slopes
from tui_transformer.model.weight_table import Part, WeightTable

KINDS = ("alibi", "new_decoder_architecture", "multi_query", "parallel_attn", "bias")


def norms_count(key: str, value: object) -> None:
    """Norms that the sublayers of a layer read: 1 or 2."""
    if value not in (None, 1, 2) or isinstance(value, bool):
        raise UsageError(f"{key} {shown(value)} is neither 1 nor 2")


@dataclass(frozen=True)
class FalconConfig(GroupedConfig):
    """The keys of Falcon's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "falcon"
    title: ClassVar[str] = "Falcon"
    keys: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "num_kv_heads",
        "rms_norm_eps": "layer_norm_epsilon",
        "hidden_act": "activation",
        "intermediate_size": "ffn_hidden_size",
    }
    other_names: ClassVar[Mapping[str, str]] = {"hidden_size": "n_embed"}
    fixed: ClassVar[Mapping[str, Any]] = {**GroupedConfig.fixed, "head_dim": None}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"bias": ATTENTION_MATRICES}
    feed_forward_bias: ClassVar[str] = "bias"
    gated: ClassVar[bool] = False
    norm_kind: ClassVar[str] = "layer"
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        **dict.fromkeys(KINDS, truth),
        "num_ln_in_parallel_attn": norms_count,
    }

    vocab_size: int = 65024
    tie_word_embeddings: bool = True
    hidden_size: int = 4544
    intermediate_size: int = 18176
    num_attention_heads: int = 71
    hidden_act: str = "gelu"
    rms_norm_eps: float = 1e-5
    alibi: bool = False
    new_decoder_architecture: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    bias: bool = False
    num_ln_in_parallel_attn: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.new_decoder_architecture and not self.parallel_attn:
            raise UsageError("new_decoder_architecture without parallel_attn is not supported")
        if self.num_ln_in_parallel_attn == 2 and self.parallel_attn and not self.new_decoder_architecture:
            raise UsageError("num_ln_in_parallel_attn 2 without new_decoder_architecture is not supported")
        if self.key_heads == self.num_attention_heads != (self.num_key_value_heads or self.num_attention_heads):
            raise UsageError(f"num_kv_heads {self.num_key_value_heads} without multi_query is not supported")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; the feed-forward layer is 4 · hidden_size wide by default.

        An old name of hidden_size may be there, so its value is looked for under both.
        """
        if raw.get("ffn_hidden_size") is not None:
            return super().from_json(raw)
        size = raw.get("n_embed") or raw.get("hidden_size", cls.hidden_size)
        return super().from_json({**raw, "ffn_hidden_size": 4 * size if isinstance(size, int) else size})

    @property
    def key_heads(self) -> int:
        """Key heads as the file holds them."""
        if self.new_decoder_architecture:
            return self.num_key_value_heads or self.num_attention_heads
        return 1 if self.multi_query else self.num_attention_heads

    @property
    def kv_heads(self) -> int:
        """Key and value heads."""
        return self.key_heads

    def attention(self) -> Attention:
        """With rotary positions, or with distances (ALiBi), which are divided by √d_k as the scores are."""
        if not self.alibi:
            return super().attention()
        slopes = alibi_slopes(self.num_attention_heads, math.sqrt(self.head_width))
        return replace(super().attention(), rotary=None, score_bias=Distances(slopes))

    def layer(self) -> Layer:
        """Sublayers side by side that read one norm or two, or one after the other."""
        two = self.new_decoder_architecture and self.num_ln_in_parallel_attn != 1
        parallel = ("two norms" if two else "one norm") if self.parallel_attn else ""
        return replace(super().layer(), parallel=parallel)


def projected(place: int) -> Part:
    """Query (0), key (1) or value (2): every group has the rows of its query heads, of its key and of its value."""

    def take(tensor: Host, config: FalconConfig) -> Host:
        groups = config.key_heads
        inside = config.num_attention_heads // groups
        rows = tensor.reshape(groups, inside + 2, -1, *tensor.shape[1:])
        chosen = (slice(0, inside), slice(inside, inside + 1), slice(inside + 1, None))[place]
        return rows[:, chosen].reshape(-1, *tensor.shape[1:])

    return Part(f"{LAYER}.self_attention.query_key_value", take)


WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.norm": Part((f"{LAYER}.input_layernorm", f"{LAYER}.ln_attn")),
        "decoder.{}.self_attention.query": projected(0),
        "decoder.{}.self_attention.key": projected(1),
        "decoder.{}.self_attention.value": projected(2),
        "decoder.{}.feed_forward.norm": Part((f"{LAYER}.post_attention_layernorm", f"{LAYER}.ln_mlp")),
    },
    prefix="transformer.",
)
FALCON = decoder_family(FalconConfig, WEIGHTS)
