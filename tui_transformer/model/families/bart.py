"""BART (Lewis et al. 2019) and the encoder–decoders of its layers: mBART, M2M-100, Pegasus and Marian."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import BaseConfig, check_divides, check_ids, counted
from tui_transformer.model.checks import Check, layers_count, one_of, shown, token_id
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    Embedding,
    Head,
    Norm,
    Stack,
    Transformer,
    biased_layer,
)
from tui_transformer.model.families import family
from tui_transformer.model.labels import BOTH_STACKS, Layout
from tui_transformer.model.weight_table import HEAD, TABLE, Part, WeightTable, layer_parts
from tui_transformer.records import dataclass, replace

FIRST_PLACE = 2
"""The table of positions begins with two rows that no token uses."""

NORM = Norm(1e-5)
POSITIONS, LOGITS_BIAS = "embedding.positions.weight", "output.logits.bias"
OWN_TABLE = "decoder.embedding.tokens.weight"
TABLES = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens")
"""Where the embedding table may be in the file; `shared` is not used where the tables are not tied."""

BOTH_SIDES: Mapping[str, Any] = {"is_encoder_decoder": True, "is_decoder": False, "is_causal": True}


def repeated(names: frozenset[str], candidates: Sequence[str]) -> Mapping[str, str]:
    """These of a file, but for the first, and the first: equal where all are the same weight."""
    held = [name for name in candidates if name in names]
    return dict.fromkeys(held[1:], held[0]) if held else {}


def check_one_table(names: frozenset[str], candidates: Sequence[str]) -> None:
    """Raise UsageError where several of these are left in a file, because they differ."""
    for other, table in repeated(names, candidates).items():
        raise UsageError(f"tensors {other} and {table} differ: only one embedding for both sides is supported")


def tables_in(names: frozenset[str]) -> tuple[str, ...]:
    """Where the embedding table may be in this file; last the matrix of the logits."""
    prefix = "model." if any(name.startswith("model.") for name in names) else ""
    return (*(f"{prefix}{table.removeprefix('model.')}.weight" for table in TABLES), "lm_head.weight")


PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
FIRST, BETWEEN = (
    {"norm": f"{name}_layer_norm", **{part: f"{name}.{tensor}" for part, tensor in PROJECTIONS.items()}}
    for name in ("self_attn", "encoder_attn")
)
SUBLAYERS = {**FIRST, "hidden": "fc1", "down": "fc2", "feed_norm": "final_layer_norm"}
"""The steps of a layer, and their tensors."""


def _stack(stack: str, prefix: str) -> Mapping[str, str | Part]:
    """The parts of a stack; `prefix` is in front of its embedding's steps."""
    ours, layer = f"{stack}.{{}}", f"model.{stack}.layers.{{}}"
    return {
        f"{prefix}embedding.positions": f"model.{stack}.embed_positions",
        f"{prefix}embedding.norm": f"model.{stack}.layernorm_embedding",
        **layer_parts(ours, layer, **SUBLAYERS),
        **{f"{ours}.cross_attention.{step}": f"{layer}.{tensor}" for step, tensor in BETWEEN.items()},
        f"{stack}.norm": f"model.{stack}.layer_norm",
    }


@dataclass(frozen=True)
class BartConfig(BaseConfig):
    """BART: sizes and choices, under the names of the published configurations.

    `logits_bias`, `own_head`, `own_table` and `own_positions` are no settings: the file has the bias or not, a matrix
    for the logits that is not the embedding table again or not, an embedding of the decoder's own or not, and tables of
    the sines or not.

    Class attributes:
        place: Of the norms, as in `Layer`; pre-norm stacks end with a norm.
        positions: "learned", or "halves" for sines unless the file has tables of positions.
    """

    model_type = "bart"
    has_decoder = True
    place: ClassVar[str] = "post"
    positions: ClassVar[str] = "learned"
    of_the_file = frozenset({"logits_bias", "own_head", "own_table", "own_positions"})
    layouts = BOTH_STACKS
    fixed: ClassVar[Mapping[str, Any]] = {
        "normalize_before": False,
        "normalize_embedding": True,
        "add_final_layer_norm": False,
        "static_position_embeddings": False,
        "extra_pos_embeddings": FIRST_PLACE,
        **BOTH_SIDES,
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "d_model": "hidden_size",
        "encoder_layers": "num_hidden_layers",
        "encoder_attention_heads": "num_attention_heads",
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(("encoder_layers", "decoder_layers"), layers_count),
        "activation_function": one_of(tuple(ACTIVATION_NAMES)),
        **dict.fromkeys(("pad_token_id", "decoder_start_token_id"), token_id),
    }
    weights = WeightTable(
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
    own_positions: bool = False

    @property
    def last_starts(self) -> bool:
        """A decoder that reads the sentence again begins with its last token: that of a language."""
        return self.place == "pre"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("encoder_attention_heads", "decoder_attention_heads"):
            check_divides("d_model", self.d_model, key, getattr(self, key))
        check_ids(self, "pad_token_id")
        check_ids(self, "decoder_start_token_id", words=self.target_vocab_size)

    def places(self, rows: Host) -> Host:
        return counted(rows) + (FIRST_PLACE if self.positions == "learned" else 0)

    @property
    def two_tables(self) -> bool:
        """Source and target have words, and an embedding, of their own."""
        return False

    def fitted(self, names: frozenset[str]) -> Self:
        """With a bias of the logits, a matrix of their own, the decoder's own table and tables of positions, if any."""
        *tables, matrix = tables_in(names)
        own_head, own_table = HEAD in names or matrix in names, self.two_tables
        if not self.two_tables and self.tie_word_embeddings:
            check_one_table(names, tables)
            own_head = HEAD in names or matrix in repeated(names, (*tables, matrix))
        elif not self.two_tables:
            own_table = OWN_TABLE in names or (tables[-1] in names and not names.isdisjoint(tables[:-1]))
        bias, positions = (self.weights.has(name, names) for name in (LOGITS_BIAS, POSITIONS))
        positions = positions and self.positions == "halves"
        return replace(self, logits_bias=bias, own_head=own_head, own_table=own_table, own_positions=positions)

    def copies(self, names: frozenset[str]) -> Mapping[str, str]:
        """One table serves both stacks and, unless the file has another there, the logits; untied, equal tables."""
        shared, encoder, decoder, matrix = tables_in(names)
        if self.two_tables:
            return repeated(names, (decoder, matrix)) if self.tie_word_embeddings else {}
        if self.tie_word_embeddings:
            return repeated(names, (shared, encoder, decoder, matrix))
        return repeated(names, (encoder if encoder in names else shared, decoder))

    def embedding(self) -> Embedding:
        """Words and positions: learned and normalised, or sines, of which some files hold a table."""
        rows = self.max_position_embeddings
        scale = math.sqrt(self.d_model) if self.scale_embedding else 1.0
        if self.positions == "learned":
            return Embedding(scale=scale, positions="learned", max_length=rows + FIRST_PLACE, norm=NORM)
        return Embedding(scale=scale, positions="learned" if self.own_positions else self.positions, max_length=rows)

    def describe(self) -> Transformer:
        """Tokens → embedding → encoder and decoder → logits (Lewis et al. 2019, §2.1)."""
        first, layer = (
            biased_layer(self.d_model, heads, d_ff, self.activation_function, NORM, self.place)
            for heads, d_ff in (
                (self.encoder_attention_heads, self.encoder_ffn_dim),
                (self.decoder_attention_heads, self.decoder_ffn_dim),
            )
        )
        second = replace(layer, attention=replace(layer.attention, causal=True), cross=layer.attention)
        embedding, last = self.embedding(), NORM if self.place == "pre" else None
        own = replace(embedding, table=OWN_TABLE) if self.own_table else embedding
        encoder = Stack(embedding, (first,) * self.encoder_layers, last)
        decoder = Stack(own, (second,) * self.decoder_layers, last)
        table, words = (OWN_TABLE, self.target_vocab_size) if self.two_tables else (TABLE, 0)
        head = Head(None if self.own_head else table, bias=self.logits_bias)
        known = self.own_head or self.tie_word_embeddings
        return Transformer(self.vocab_size, self.d_model, encoder, decoder, head if known else None, words)


LARGE = {
    "vocab_size": 50265,
    "d_model": 1024,
    "encoder_layers": 12,
    "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_layers": 12,
    "decoder_attention_heads": 16,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
}
"""The sizes of BART large, which the families that are pre-norm have as defaults."""


MBartConfig = family(
    "MBartConfig",
    BartConfig,
    "mbart",
    LARGE | {"decoder_start_token_id": None},
    title="mBART",
    place="pre",
    fixed={**BartConfig.fixed, "normalize_before": True, "add_final_layer_norm": True},
)
"""mBART (Liu et al. 2020): BART for many languages, with a norm of the embedding and after each stack."""

PegasusConfig = family(
    "PegasusConfig",
    BartConfig,
    "pegasus",
    LARGE | {"pad_token_id": 0, "decoder_start_token_id": 0},
    title="Pegasus",
    place="pre",
    positions="halves",
    layouts={},
    fixed={
        **MBartConfig.fixed,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "extra_pos_embeddings": 1,
    },
)
"""Pegasus (Zhang et al. 2020): summaries; the layers of mBART with Marian's sines."""


@dataclass(frozen=True)
class M2M100Config(BartConfig):
    """M2M-100 (Fan et al. 2020) and NLLB (NLLB Team 2022): translation between a hundred languages, with sines."""

    model_type = "m2m_100"
    title = "M2M-100"
    place = "pre"
    defaults = LARGE | {"vocab_size": 128112, "activation_function": "relu", "scale_embedding": True}
    positions = "fairseq"
    layouts: ClassVar[Mapping[str, Layout]] = {}
    fixed = BOTH_SIDES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_token_id is None:
            raise UsageError(f"pad_token_id {shown(None)} leaves no position: they count from it")
        if self.d_model < 4 or self.d_model % 2:
            raise UsageError(f"d_model {self.d_model} gives no pairs of sines and cosines: use an even number from 4")

    def embedding(self) -> Embedding:
        """Words and sines; the row of padding is 0."""
        return replace(super().embedding(), silent=self.pad_token_id, max_length=0)


@dataclass(frozen=True)
class MarianConfig(BartConfig):
    """Marian (Junczys-Dowmunt et al. 2018): the layers of BART with sines before cosines for positions.

    Source and target share one vocabulary and one embedding table, or each has its own.
    """

    model_type = "marian"
    starts_padded = True
    positions = "halves"
    layouts: ClassVar[Mapping[str, Layout]] = {}
    fixed: ClassVar[Mapping[str, Any]] = {
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
        **BOTH_SIDES,
    }

    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None
    decoder_vocab_size: int | None = None
    share_encoder_decoder_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share_encoder_decoder_embeddings and self.target_vocab_size != self.vocab_size:
            sizes = f"decoder_vocab_size {shown(self.decoder_vocab_size)} is not vocab_size {self.vocab_size}"
            raise UsageError(f"{sizes}: only with share_encoder_decoder_embeddings false may they differ")

    @property
    def two_tables(self) -> bool:
        return not self.share_encoder_decoder_embeddings

    @property
    def target_vocab_size(self) -> int:
        return self.decoder_vocab_size or self.vocab_size
