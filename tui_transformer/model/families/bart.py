"""BART (Lewis et al. 2019): post-norm, learned positions, a norm of the embedding."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Builder, Program
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, check_settings, one_of, renamed, size_up_to, token_id, truth
from tui_transformer.model.config import LARGEST_SIZE, MOST_LAYERS
from tui_transformer.model.embedding import Embedding
from tui_transformer.model.families.base import Family, Lengths, Stored, as_it_is, counted, transposed
from tui_transformer.model.families.encoder_decoder import (
    Stack,
    check_ids,
    check_one_table,
    encoder_decoder,
    first_of,
    repeated,
)
from tui_transformer.model.layers import ACTIVATION_NAMES, ALL_MATRICES, Layout, Norm, logits

FIRST_PLACE = 2
"""The table of positions begins with two rows that no token uses."""

NORM = Norm(1e-5)
TABLE, HEAD, MATRIX = "embedding.tokens.weight", "output.logits.weight", "lm_head.weight"
LOGITS_BIAS = "output.logits.bias"
ONLY_IN_FILES = frozenset({"logits_bias", "own_head", "own_positions"})
STACKS = ("encoder", "decoder")
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
LAYER_PARTS: Mapping[str, str] = {
    **{
        f"{ours}.{part}": f"{name}.{stored}"
        for ours, name in ATTENTIONS.items()
        for part, stored in PROJECTIONS.items()
    },
    **{f"{ours}.norm": f"{name}_layer_norm" for ours, name in ATTENTIONS.items()},
    "feed_forward.hidden": "fc1",
    "feed_forward.output": "fc2",
    "feed_forward.norm": "final_layer_norm",
}
"""The parts of a layer, by the names of the program and of the file."""

TABLES = ("shared.weight", *(f"{stack}.embed_tokens.weight" for stack in STACKS))
"""Where the embedding table may be in the file."""

EMBEDDINGS: Mapping[str, str] = {
    f"{prefix}embedding.{part}": f"{stack}.{stored}"
    for prefix, stack in zip(("", "decoder."), STACKS, strict=True)
    for part, stored in {
        "positions.weight": "embed_positions.weight",
        "norm.weight": "layernorm_embedding.weight",
        "norm.bias": "layernorm_embedding.bias",
    }.items()
}
"""The other weights before the layers, by the names of the program and of the file."""


@dataclass(frozen=True)
class BartConfig:
    """Sizes and choices, under the names of the published configurations.

    `logits_bias` and `own_head` are no settings: the file has the bias or not, and a matrix for the logits that is not
    the embedding table again or not.

    Raises:
        UsageError: A size or choice that cannot be; the message names it.
    """

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
    logits_bias: bool = True
    own_head: bool = False

    model_type: ClassVar[str] = "bart"
    fixed: ClassVar[Mapping[str, Any]] = {
        "normalize_before": False,
        "normalize_embedding": True,
        "add_final_layer_norm": False,
        "static_position_embeddings": False,
        "extra_pos_embeddings": FIRST_PLACE,
        "tie_word_embeddings": True,
        "is_encoder_decoder": True,
        "is_decoder": False,
        "is_causal": True,
    }

    def __post_init__(self) -> None:
        for key, check in _CHECKS.items():
            check(key, getattr(self, key))
        for key in ("encoder_attention_heads", "decoder_attention_heads"):
            if self.d_model % getattr(self, key):
                raise UsageError(f"d_model {self.d_model} is not divisible by {key} {getattr(self, key)}")
        check_ids(self, "pad_token_id", "decoder_start_token_id")

    @property
    def has_decoder(self) -> bool:
        """There are always two sequences."""
        return True

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
        """What the decoder's sequence begins with."""
        return self.decoder_start_token_id

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        layers = f"{self.encoder_layers} + {self.decoder_layers} layers"
        heads = " + ".join(map(str, dict.fromkeys((self.encoder_attention_heads, self.decoder_attention_heads))))
        widths = " + ".join(map(str, dict.fromkeys((self.encoder_ffn_dim, self.decoder_ffn_dim))))
        return f"{self.model_type} · d_model {self.d_model} · {heads} heads · d_ff {widths} · {layers}"

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        settings = {"model_type": self.model_type, **dataclasses.asdict(self)}
        return {key: value for key, value in settings.items() if key not in ONLY_IN_FILES}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; settings that only training reads are left alone."""
        check_settings(raw, cls.fixed)
        given = renamed(raw, _OTHER_NAMES)
        needed = {field.name: None for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING}
        known = {field.name: given[field.name] for field in dataclasses.fields(cls) if field.name in given}
        return cls(**needed | known)


_OTHER_NAMES = {
    "d_model": "hidden_size",
    "encoder_layers": "num_hidden_layers",
    "encoder_attention_heads": "num_attention_heads",
}

_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("vocab_size", "d_model", "max_position_embeddings"), size_up_to(LARGEST_SIZE)),
    **{f"{stack}_{part}": size_up_to(LARGEST_SIZE) for stack in STACKS for part in ("attention_heads", "ffn_dim")},
    **{f"{stack}_layers": size_up_to(MOST_LAYERS) for stack in STACKS},
    "activation_function": one_of(tuple(ACTIVATION_NAMES)),
    "scale_embedding": truth,
    **dict.fromkeys(("pad_token_id", "decoder_start_token_id"), token_id),
}


Configured = TypeVar("Configured", bound=BartConfig)


def program(config: BartConfig, lengths: Lengths) -> Program:
    """Tokens → embedding → encoder and decoder → logits (Lewis et al. 2019, §2.1)."""
    rows = config.max_position_embeddings + FIRST_PLACE
    return build_program(config, lengths, Embedding(positions="learned", max_length=rows, norm=NORM))


def build_program(config: BartConfig, lengths: Lengths, embedding: Embedding) -> Program:
    """The program with this embedding in front of both stacks; its scale is the configuration's."""
    embedding = dataclasses.replace(embedding, scale=math.sqrt(config.d_model) if config.scale_embedding else 1.0)
    build, vocabulary = Builder(), Axis("vocabulary", config.vocab_size)
    encoder = Stack(
        config.encoder_layers, _layout(config, config.encoder_attention_heads, config.encoder_ffn_dim), embedding
    )
    decoder = Stack(
        config.decoder_layers, _layout(config, config.decoder_attention_heads, config.decoder_ffn_dim), embedding
    )
    x = encoder_decoder(build, vocabulary, encoder, decoder, lengths)
    tied = None if config.own_head else embedding.table
    logits(build, x, vocabulary, decoder.layout.model, tied=tied, bias=config.logits_bias)
    return build.program()


def _layout(config: BartConfig, heads: int, d_ff: int) -> Layout:
    """What the layers of a stack need of the configuration."""
    return Layout(
        d_model=config.d_model,
        heads=heads,
        d_ff=d_ff,
        norm=NORM,
        place="post",
        activation=ACTIVATION_NAMES[config.activation_function],
        head_width=config.d_model // heads,
        kv_heads=heads,
        bias=ALL_MATRICES,
    )


def stored(_: BartConfig, name: str, names: frozenset[str]) -> Stored:
    """Where a weight is; the bias of the logits is stored as 1 × v."""
    if name == LOGITS_BIAS:
        return Stored("final_logits_bias", lambda tensor: tensor[0])
    if name == HEAD:
        return Stored(MATRIX, transposed)
    if name == TABLE:
        return Stored(first_of(names, *_tables(names), MATRIX))
    prefix = _prefix(names)
    if name in EMBEDDINGS:
        return Stored(prefix + EMBEDDINGS[name])
    stack, layer, sublayer, part, kind = name.split(".")
    take = transposed if kind == "weight" and part != "norm" else as_it_is
    return Stored(f"{prefix}{stack}.layers.{layer}.{LAYER_PARTS[f'{sublayer}.{part}']}.{kind}", take)


def fitted(config: Configured, names: frozenset[str]) -> Configured:
    """With the bias of the logits, and a matrix of their own, where the file has them."""
    tables = _tables(names)
    check_one_table(names, *tables)
    own = HEAD in names or MATRIX in repeated(names, *tables, MATRIX)
    bias = not names.isdisjoint({LOGITS_BIAS, "final_logits_bias"})
    return dataclasses.replace(config, logits_bias=bias, own_head=own)


def copies(_: BartConfig, names: frozenset[str]) -> Mapping[str, str]:
    """One table serves both stacks and, unless the file has another there, the logits."""
    return repeated(names, *_tables(names), MATRIX)


def _tables(names: frozenset[str]) -> tuple[str, ...]:
    """Where the embedding table may be in this file."""
    return tuple(_prefix(names) + place for place in TABLES)


def _prefix(names: frozenset[str]) -> str:
    """What is in front of names in a file; one of the bare model lacks it."""
    return "model." if any(name.startswith("model.") for name in names) else ""


def places(rows: Host, pad_id: int | None) -> Host:
    """Rows 2, 3, 4 … of the table of positions."""
    return counted(rows, pad_id) + FIRST_PLACE


BART = Family("bart", BartConfig.from_json, program, stored, places, fitted, copies)
