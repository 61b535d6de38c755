"""T5 (Raffel et al. 2020), T5 1.1 and Flan-T5: pre-norm, relative position bias, scores that are not divided."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import RelativeBias
from tui_transformer.engine.program import Builder, Program
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import (
    Check,
    check_settings,
    one_of,
    renamed,
    shown,
    size_up_to,
    small,
    token_id,
    truth,
)
from tui_transformer.model.config import LARGEST_SIZE, MOST_LAYERS
from tui_transformer.model.embedding import Embedding
from tui_transformer.model.families.base import Family, Lengths, Stored, as_it_is, transposed
from tui_transformer.model.families.encoder_decoder import (
    Stack,
    check_ids,
    check_one_table,
    encoder_decoder,
    first_of,
    repeated,
)
from tui_transformer.model.layers import ACTIVATION_NAMES, Bias, Layout, Norm, Sequence, logits

MAX_LENGTH = 1 << 15
"""Relative positions set no limit; this one keeps a mistake from filling the memory."""

LARGEST_DISTANCE = 1 << 16
FEWEST_BUCKETS = 4
"""Fewer leave the encoder, which halves them, none for near keys or none for far ones."""

FIXED: Mapping[str, Any] = {"is_encoder_decoder": True, "is_decoder": False, "is_causal": True}
TABLE, HEAD, MATRIX = "embedding.tokens.weight", "output.logits.weight", "lm_head.weight"
TABLES = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
PLACES: Mapping[str, tuple[str, ...]] = {
    TABLE: (*TABLES, MATRIX),
    HEAD: (MATRIX,),
    **{f"{stack}.norm.weight": (f"{stack}.final_layer_norm.weight",) for stack in ("encoder", "decoder")},
}
"""The weights outside the layers: where each may be in the file."""

PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
ATTENTIONS = {"self_attention": "SelfAttention", "cross_attention": "EncDecAttention"}
LAYER_PARTS: Mapping[str, str] = {
    **{
        f"{ours}.{part}": f"{name}.{stored}"
        for ours, name in ATTENTIONS.items()
        for part, stored in PROJECTIONS.items()
    },
    "self_attention.biased": "SelfAttention.relative_attention_bias",
    "feed_forward.gate": "DenseReluDense.wi_0",
    "feed_forward.output": "DenseReluDense.wo",
    **{f"{sublayer}.norm": "layer_norm" for sublayer in (*ATTENTIONS, "feed_forward")},
}
"""The parts of a sublayer, by the names of the program and of the file."""

SUBLAYERS: Mapping[str, tuple[str, ...]] = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}
"""The order of a layer's sublayers, by which the file counts them."""


@dataclass(frozen=True)
class T5Config:
    """Sizes and choices, under the names of the published configurations.

    `own_head` is no setting: the file has a matrix for the logits that is not the embedding table again, or not.

    Raises:
        UsageError: A size or choice that cannot be; the message names it.
    """

    vocab_size: int
    d_model: int
    d_kv: int
    d_ff: int
    num_layers: int
    num_decoder_layers: int
    num_heads: int
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    layer_norm_epsilon: float = 1e-6
    dense_act_fn: str = "relu"
    is_gated_act: bool = False
    scale_decoder_outputs: bool = True
    pad_token_id: int | None = 0
    decoder_start_token_id: int | None = None
    own_head: bool = False

    def __post_init__(self) -> None:
        for key, check in _CHECKS.items():
            check(key, getattr(self, key))
        buckets, farthest = self.relative_attention_num_buckets, self.relative_attention_max_distance
        if buckets < FEWEST_BUCKETS:
            raise UsageError(f"relative_attention_num_buckets {buckets} are too few: use {FEWEST_BUCKETS} or more")
        if farthest <= buckets // 2:
            raise UsageError(
                f"relative_attention_max_distance {farthest} is not above half of the {buckets} buckets, which hold "
                "near keys"
            )
        check_ids(self, "pad_token_id", "decoder_start_token_id")

    @property
    def has_decoder(self) -> bool:
        """There are always two sequences."""
        return True

    @property
    def max_length(self) -> int:
        """How many tokens a sentence may have."""
        return MAX_LENGTH

    @property
    def pad_id(self) -> int | None:
        """The ID of padding."""
        return self.pad_token_id

    @property
    def start_id(self) -> int | None:
        """What the decoder's sequence begins with: padding, where nothing else is said."""
        return self.pad_token_id if self.decoder_start_token_id is None else self.decoder_start_token_id

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        heads = f"{self.num_heads} heads of {self.d_kv}"
        layers = f"{self.num_layers} + {self.num_decoder_layers} layers"
        return f"t5 · d_model {self.d_model} · {heads} · d_ff {self.d_ff} · {layers}"

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        settings = {"model_type": "t5", **dataclasses.asdict(self)}
        return {key: value for key, value in settings.items() if key != "own_head"}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> T5Config:
        """The configuration that a `config.json` describes; settings that only training reads are left alone."""
        check_settings(raw, FIXED)
        given = {"scale_decoder_outputs": raw.get("tie_word_embeddings", True)} | _feed_forward(raw)
        given |= renamed(raw, _OTHER_NAMES)
        if given.get("num_decoder_layers") is None:
            given["num_decoder_layers"] = given.get("num_layers")
        needed = {field.name: None for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING}
        known = {field.name: given[field.name] for field in dataclasses.fields(cls) if field.name in given}
        return cls(**needed | known)


_OTHER_NAMES = {
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_kv": "head_dim",
}

_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("vocab_size", "d_model", "d_kv", "d_ff", "num_heads"), size_up_to(LARGEST_SIZE)),
    **dict.fromkeys(("num_layers", "num_decoder_layers"), size_up_to(MOST_LAYERS)),
    "relative_attention_num_buckets": size_up_to(LARGEST_SIZE),
    "relative_attention_max_distance": size_up_to(LARGEST_DISTANCE),
    "layer_norm_epsilon": small,
    "dense_act_fn": one_of(tuple(ACTIVATION_NAMES)),
    **dict.fromkeys(("is_gated_act", "scale_decoder_outputs"), truth),
    **dict.fromkeys(("pad_token_id", "decoder_start_token_id"), token_id),
}


def _feed_forward(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What `feed_forward_proj` says: an activation, "gated-" before it for a gated layer; "gated-gelu" is by tanh."""
    name = raw.get("feed_forward_proj", "relu")
    if not isinstance(name, str):
        raise UsageError(f"feed_forward_proj {shown(name)} is not the name of an activation")
    activation = "gelu_new" if name == "gated-gelu" else name.removeprefix("gated-")
    one_of(tuple(ACTIVATION_NAMES))("feed_forward_proj", activation)
    return {"dense_act_fn": activation, "is_gated_act": name.startswith("gated-")}


def program(config: T5Config, lengths: Lengths) -> Program:
    """Tokens → embedding → encoder and decoder, each with a final norm → logits (Raffel et al. 2020, §2.1)."""
    build, layout = Builder(), _layout(config)
    vocabulary = Axis("vocabulary", config.vocab_size)
    encoder = Stack(config.num_layers, layout, Embedding(), _bias(config, "encoder"))
    decoder = Stack(config.num_decoder_layers, layout, Embedding(), _bias(config, "decoder"))
    x = encoder_decoder(build, vocabulary, encoder, decoder, lengths)
    scale = config.d_model**-0.5 if config.scale_decoder_outputs else 1.0
    logits(build, x, vocabulary, layout.model, tied=None if config.own_head else TABLE, bias=False, scale=scale)
    return build.program()


def _layout(config: T5Config) -> Layout:
    """What the layers need of the configuration."""
    return Layout(
        d_model=config.d_model,
        heads=config.num_heads,
        d_ff=config.d_ff,
        norm=Norm(config.layer_norm_epsilon, "rms"),
        place="pre",
        activation=ACTIVATION_NAMES[config.dense_act_fn],
        head_width=config.d_kv,
        kv_heads=config.num_heads,
        gated=config.is_gated_act,
        scaled=False,
    )


def _bias(config: T5Config, stack: str) -> Bias:
    """The bias of a stack's scores; all its layers read the table of the first."""
    op = RelativeBias(config.relative_attention_max_distance, bidirectional=stack == "encoder")
    axes = Axis("bucket", config.relative_attention_num_buckets), Axis("head", config.num_heads)

    def add(build: Builder, scores: str, queries: Sequence, keys: Sequence) -> str:
        table = build.shared_weight(f"{stack}.0.self_attention.biased.weight", *axes)
        return build("biased", op, scores, table, queries.places, keys.keys)

    return add


def stored(config: T5Config, name: str, names: frozenset[str]) -> Stored:
    """Where a weight is; matrices are stored out × in, tables as they are."""
    if name in PLACES:
        return Stored(first_of(names, *PLACES[name]), transposed if name == HEAD else as_it_is)
    stack, layer, sublayer, part, kind = name.split(".")
    place = SUBLAYERS[stack].index(sublayer)
    take = as_it_is if part in ("norm", "biased") else transposed
    return Stored(f"{stack}.block.{layer}.layer.{place}.{_part(config, sublayer, part)}.{kind}", take)


def _part(config: T5Config, sublayer: str, part: str) -> str:
    """The name of a part of a sublayer in the file; a gated layer counts its first two matrices."""
    if part == "hidden":
        return "DenseReluDense.wi_1" if config.is_gated_act else "DenseReluDense.wi"
    return LAYER_PARTS[f"{sublayer}.{part}"]


def fitted(config: T5Config, names: frozenset[str]) -> T5Config:
    """With a matrix of its own for the logits, where the file has one that is not the embedding table again."""
    check_one_table(names, *TABLES)
    own = HEAD in names or MATRIX in repeated(names, *PLACES[TABLE])
    if own and config.scale_decoder_outputs:
        raise UsageError(
            f"tensors {MATRIX} and {first_of(names, *TABLES)} differ: logits of a matrix of their own are supported "
            "only where tie_word_embeddings is false"
        )
    return dataclasses.replace(config, own_head=own)


def copies(_: T5Config, names: frozenset[str]) -> Mapping[str, str]:
    """One table serves both stacks and, unless the file has another there, the logits."""
    return repeated(names, *PLACES[TABLE])


T5 = Family("t5", T5Config.from_json, program, stored, fitted=fitted, copies=copies)
