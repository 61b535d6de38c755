"""BART (Lewis et al. 2019): post-norm, learned positions, a norm of the embedding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from tui_transformer.engine.backend import Host
from tui_transformer.model.checks import Check, token_id, truth
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    Attention,
    Embedding,
    FeedForward,
    Head,
    Layer,
    Norm,
    Stack,
    Transformer,
)
from tui_transformer.model.families.base import Family, counted
from tui_transformer.model.families.settings import (
    FamilyConfig,
    a_size,
    an_activation,
    check_divides,
    check_ids,
    described,
    layers_count,
)
from tui_transformer.model.families.shared_tables import check_one_table, repeated
from tui_transformer.model.weight_table import HEAD, TABLE, Part, WeightTable

FIRST_PLACE = 2
"""The table of positions begins with two rows that no token uses."""

NORM = Norm(1e-5)
LOGITS_BIAS = "output.logits.bias"
STACKS = ("encoder", "decoder")


@dataclass(frozen=True)
class BartConfig(FamilyConfig):
    """Sizes and choices, under the names of the published configurations.

    `logits_bias`, `own_head` and `own_table` are no settings: the file has the bias or not, a matrix for the logits
    that is not the embedding table again or not, and an embedding of the decoder's own or not.

    Class attributes:
        place: Of the norms, as in `Layer`; pre-norm stacks end with a norm.

    Raises:
        UsageError: A size or choice that cannot be; the message names it.
    """

    model_type: ClassVar[str] = "bart"
    place: ClassVar[str] = "post"
    of_the_file: ClassVar[frozenset[str]] = frozenset({"logits_bias", "own_head", "own_table"})
    fixed: ClassVar[Mapping[str, Any]] = {
        "normalize_before": False,
        "normalize_embedding": True,
        "add_final_layer_norm": False,
        "static_position_embeddings": False,
        "extra_pos_embeddings": FIRST_PLACE,
        "is_encoder_decoder": True,
        "is_decoder": False,
        "is_causal": True,
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "d_model": "hidden_size",
        "encoder_layers": "num_hidden_layers",
        "encoder_attention_heads": "num_attention_heads",
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(("vocab_size", "d_model", "max_position_embeddings"), a_size),
        **{f"{stack}_{part}": a_size for stack in STACKS for part in ("attention_heads", "ffn_dim")},
        **{f"{stack}_layers": layers_count for stack in STACKS},
        "activation_function": an_activation,
        **dict.fromkeys(("scale_embedding", "tie_word_embeddings"), truth),
        **dict.fromkeys(("pad_token_id", "decoder_start_token_id"), token_id),
    }

    vocab_size: int
    d_model: int
    encoder_layers: int
    encoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_layers: int
    decoder_attention_heads: int
    decoder_ffn_dim: int
    max_position_embeddings: int
    activation_function: str = "gelu"
    scale_embedding: bool = False
    pad_token_id: int | None = 1
    decoder_start_token_id: int | None = 2
    tie_word_embeddings: bool = True
    logits_bias: bool = True
    own_head: bool = False
    own_table: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("encoder_attention_heads", "decoder_attention_heads"):
            check_divides("d_model", self.d_model, key, getattr(self, key))
        check_ids(self, "pad_token_id")
        check_ids(self, "decoder_start_token_id", words=self.target_vocab_size)

    @property
    def has_decoder(self) -> bool:
        """There are always two sequences."""
        return True

    @property
    def target_vocab_size(self) -> int:
        """The words of the decoder."""
        return self.vocab_size

    @property
    def max_length(self) -> int:
        """How many tokens a sentence may have."""
        return self.max_position_embeddings

    @property
    def pad_id(self) -> int | None:
        """The ID of padding."""
        return self.pad_token_id

    @property
    def start_id(self) -> int | None:
        """The ID that the decoder's sequence begins with."""
        return self.decoder_start_token_id

    @property
    def embedding_scale(self) -> float:
        """The factor of the rows of the embedding table."""
        return math.sqrt(self.d_model) if self.scale_embedding else 1.0

    def embedding(self) -> Embedding:
        """Words and learned positions, normalised."""
        rows = self.max_position_embeddings + FIRST_PLACE
        return Embedding(scale=self.embedding_scale, positions="learned", max_length=rows, norm=NORM)

    def layer(self, heads: int, d_ff: int) -> Layer:
        """A layer of the encoder, with every bias."""
        attention = Attention(heads, self.d_model // heads, bias=ATTENTION_MATRICES)
        feed_forward = FeedForward(d_ff, ACTIVATION_NAMES[self.activation_function], bias=FEED_FORWARD_MATRICES)
        return Layer(attention, feed_forward, NORM, self.place)

    def stacks(self) -> tuple[Stack, Stack]:
        """The encoder and the decoder."""
        first = self.layer(self.encoder_attention_heads, self.encoder_ffn_dim)
        layer = self.layer(self.decoder_attention_heads, self.decoder_ffn_dim)
        second = replace(layer, attention=replace(layer.attention, causal=True), cross=layer.attention)
        embedding, last = self.embedding(), NORM if self.place == "pre" else None
        encoder, decoder = (first,) * self.encoder_layers, (second,) * self.decoder_layers
        second_embedding = replace(embedding, table=OWN_TABLE) if self.own_table else embedding
        return Stack(embedding, encoder, last), Stack(second_embedding, decoder, last)

    def describe(self) -> Transformer:
        """Tokens → embedding → encoder and decoder → logits (Lewis et al. 2019, §2.1)."""
        head = Head(None if self.own_head else TABLE, bias=self.logits_bias)
        known = self.own_head or self.tie_word_embeddings
        return Transformer(self.vocab_size, self.d_model, *self.stacks(), head if known else None)


def _attention(stack: str, ours: str, stored: str) -> Mapping[str, str]:
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    layer, place = f"{stack}.{{}}.{ours}", f"model.{stack}.layers.{{}}.{stored}"
    return {f"{layer}.{part}": f"{place}.{name}" for part, name in parts.items()} | {
        f"{layer}.norm": f"{place}_layer_norm"
    }


def _stack(stack: str, prefix: str) -> Mapping[str, str]:
    """The parts of a stack; `prefix` is in front of its embedding's steps."""
    layer = f"model.{stack}.layers.{{}}"
    return {
        f"{prefix}embedding.positions": f"model.{stack}.embed_positions",
        f"{prefix}embedding.norm": f"model.{stack}.layernorm_embedding",
        **_attention(stack, "self_attention", "self_attn"),
        **_attention(stack, "cross_attention", "encoder_attn"),
        f"{stack}.{{}}.feed_forward.hidden": f"{layer}.fc1",
        f"{stack}.{{}}.feed_forward.output": f"{layer}.fc2",
        f"{stack}.{{}}.feed_forward.norm": f"{layer}.final_layer_norm",
        f"{stack}.norm": f"model.{stack}.layer_norm",
    }


TABLES = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens")
"""Where the embedding table may be in the file; `shared` is not used where the tables are not tied."""

OWN_TABLE = "decoder.embedding.tokens.weight"

WEIGHTS = WeightTable(
    {
        "embedding.tokens": Part((TABLES[1], TABLES[0], TABLES[2], "lm_head")),
        "decoder.embedding.tokens": TABLES[-1],
        **_stack("encoder", ""),
        **_stack("decoder", "decoder."),
        "output.logits.weight": "lm_head",
        LOGITS_BIAS: Part("final_logits_bias", lambda tensor, _: tensor[0], whole=True),
    },
    prefix="model.",
)

Configured = TypeVar("Configured", bound=BartConfig)


def fitted(config: Configured, names: frozenset[str]) -> Configured:
    """With the bias of the logits, a matrix of their own, and the decoder's own table, where the file has them."""
    *tables, matrix = tables_in(names)
    bias = WEIGHTS.has(LOGITS_BIAS, names)
    if not config.tie_word_embeddings:
        own_table = OWN_TABLE in names or (tables[-1] in names and not names.isdisjoint(tables[:-1]))
        own_head = HEAD in names or matrix in names
        return replace(config, logits_bias=bias, own_head=own_head, own_table=own_table)
    check_one_table(names, tables)
    own = HEAD in names or matrix in repeated(names, (*tables, matrix))
    return replace(config, logits_bias=bias, own_head=own)


def copies(config: BartConfig, names: frozenset[str]) -> Mapping[str, str]:
    """One table serves both stacks and, unless the file has another there, the logits; untied, only equal tables."""
    shared, encoder, decoder, matrix = tables_in(names)
    if config.tie_word_embeddings:
        return repeated(names, (shared, encoder, decoder, matrix))
    return repeated(names, (encoder if encoder in names else shared, decoder))


def tables_in(names: frozenset[str]) -> tuple[str, ...]:
    """Where the embedding table may be in this file; last the matrix of the logits."""
    prefix = "model." if any(name.startswith("model.") for name in names) else ""
    return (*(f"{prefix}{table.removeprefix('model.')}.weight" for table in TABLES), "lm_head.weight")


def places(rows: Host, pad_id: int | None) -> Host:
    """Rows 2, 3, 4 … of the table of positions."""
    return counted(rows, pad_id) + FIRST_PLACE


BART = Family("bart", BartConfig.from_json, described, WEIGHTS, places, fitted, copies)
