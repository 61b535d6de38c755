"""T5 (Raffel et al. 2020), T5 1.1 and Flan-T5: pre-norm, relative position bias, scores that are not divided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import BaseConfig, check_ids
from tui_transformer.model.checks import Check, layers_count, one_of, shown, size_up_to, small, token_id
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    Attention,
    Embedding,
    FeedForward,
    Head,
    Layer,
    Norm,
    Stack,
    Transformer,
)
from tui_transformer.model.families import family
from tui_transformer.model.families.bart import check_one_table, repeated
from tui_transformer.model.labels import BOTH_STACKS, OF_TOKENS, TOKEN, Layout
from tui_transformer.model.layers import NOT_DIVIDED, RelativePositions
from tui_transformer.model.weight_table import HEAD, TABLE, Part, WeightTable, layer_parts
from tui_transformer.records import dataclass, replace

MAX_LENGTH = 1 << 15
"""Relative positions set no limit; this one keeps a mistake from filling the memory."""

FEWEST_BUCKETS = 4
"""Fewer leave the encoder, which halves them, none for near keys or none for far ones."""


def _stack(stack: str, last: int) -> dict[str, str | Part]:
    """The parts of a stack, whose layers count their sublayers: `last` is the feed-forward layer."""
    ours, layer, feed = f"{stack}.{{}}", f"{stack}.block.{{}}.layer", f"{last}.DenseReluDense"
    names = {"query": "q", "key": "k", "value": "v", "output": "o"}
    return {
        **layer_parts(ours, layer, norm="0.layer_norm", **{p: f"0.SelfAttention.{q}" for p, q in names.items()}),
        **{f"{ours}.cross_attention.{p}": f"{layer}.1.EncDecAttention.{q}" for p, q in names.items()},
        f"{ours}.cross_attention.norm": f"{layer}.1.layer_norm",
        f"{ours}.self_attention.biased": f"{layer}.0.SelfAttention.relative_attention_bias",
        **layer_parts(
            ours,
            layer,
            hidden=Part((f"{feed}.wi", f"{feed}.wi_1")),
            gate=f"{feed}.wi_0",
            down=f"{feed}.wo",
            feed_norm=f"{last}.layer_norm",
        ),
        f"{stack}.norm": f"{stack}.final_layer_norm",
    }


TABLES = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
MATRIX = "lm_head.weight"
IN_FILES = (*(f"{table}.weight" for table in TABLES), MATRIX)


@dataclass(frozen=True)
class T5Config(BaseConfig):
    """Sizes and choices, under the names of the published configurations.

    `own_head` and `encoder_alone` are no settings: the file has a matrix for the logits that is not the embedding table
    again, or not, and a decoder or none.

    Class attributes:
        usual_feed_forward: `feed_forward_proj` of a file that does not say it.
        own_distances: Every layer has a table of distances; otherwise all of a stack read that of the first.
    """

    model_type = "t5"
    wrapped = "transformer."
    starts_padded = True
    max_length = MAX_LENGTH
    usual_feed_forward: ClassVar[str] = "relu"
    own_distances: ClassVar[bool] = False
    of_the_file = frozenset({"own_head", "encoder_alone"})
    layouts: ClassVar[Mapping[str, Layout]] = {**BOTH_STACKS, TOKEN: OF_TOKENS}
    fixed: ClassVar[Mapping[str, Any]] = {"is_decoder": False, "is_causal": True}
    other_names: ClassVar[Mapping[str, str]] = {
        "d_model": "hidden_size",
        "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads",
        "d_kv": "head_dim",
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(("num_layers", "num_decoder_layers"), layers_count),
        "relative_attention_max_distance": size_up_to(1 << 16),
        "layer_norm_epsilon": small,
        "dense_act_fn": one_of(tuple(ACTIVATION_NAMES)),
        **dict.fromkeys(("pad_token_id", "decoder_start_token_id"), token_id),
    }
    weights = WeightTable(
        {
            "embedding.tokens": Part((*TABLES, "lm_head")),
            **_stack("encoder", 1),
            **_stack("decoder", 2),
            "output.logits": "lm_head",
        }
    )

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
    is_encoder_decoder: bool = True
    own_head: bool = False
    encoder_alone: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
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
        return not self.encoder_alone

    @property
    def summary(self) -> str:
        """The sizes in one line, with the width of a head, which is a setting of its own."""
        line = super().summary
        return line.replace(" heads", f" heads of {self.d_kv}").replace(" head ", f" head of {self.d_kv} ")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; settings that only training reads are left alone."""
        name = raw.get("feed_forward_proj", cls.usual_feed_forward)  # an activation, "gated-" before it if gated
        if not isinstance(name, str):
            raise UsageError(f"feed_forward_proj {shown(name)} is not the name of an activation")
        activation = "gelu_new" if name == "gated-gelu" else name.removeprefix("gated-")
        one_of(tuple(ACTIVATION_NAMES))("feed_forward_proj", activation)
        given = {
            "scale_decoder_outputs": raw.get("tie_word_embeddings", True),
            "dense_act_fn": activation,
            "is_gated_act": name.startswith("gated-"),
            **raw,
        }
        if given.get("num_decoder_layers") is None:
            layers = given.get("num_layers")
            given["num_decoder_layers"] = given.get("num_hidden_layers") if layers is None else layers
        return super().from_json(given)

    def fitted(self, names: frozenset[str]) -> Self:
        """Without a decoder, where there is none; with a matrix of its own for the logits, where the file has one."""
        if not self.is_encoder_decoder or not any(name.startswith("decoder.") for name in names):
            return replace(self, encoder_alone=True, is_encoder_decoder=False)
        check_one_table(names, IN_FILES[:-1])
        own = self.labels is None and (HEAD in names or MATRIX in repeated(names, IN_FILES))
        if own and self.scale_decoder_outputs:
            raise UsageError(
                f"tensors {MATRIX} and {self.weights.tensor(TABLE, names)} differ: logits of a matrix of their own are "
                "supported only where tie_word_embeddings is false"
            )
        return replace(self, own_head=own)

    def copies(self, names: frozenset[str]) -> Mapping[str, str]:
        return repeated(names, IN_FILES)

    def describe(self) -> Transformer:
        """Tokens → embedding → encoder and decoder, each with a final norm → logits (Raffel et al. 2020, §2.1)."""
        encoder = self._described("encoder", self.num_layers)
        if self.encoder_alone:
            return Transformer(self.vocab_size, self.d_model, encoder)
        decoder = self._described("decoder", self.num_decoder_layers)
        scale = self.d_model**-0.5 if self.scale_decoder_outputs else 1.0
        head = Head(None if self.own_head else TABLE, scale=scale)
        return Transformer(self.vocab_size, self.d_model, encoder, decoder, head)

    def _described(self, stack: str, layers: int) -> Stack:
        """A stack, whose scores have a bias by distance."""
        alone, attention = stack == "encoder", Attention(self.num_heads, self.d_kv, scale=NOT_DIVIDED)
        feed_forward = FeedForward(self.d_ff, ACTIVATION_NAMES[self.dense_act_fn], self.is_gated_act)
        norm, built = Norm(self.layer_norm_epsilon, "rms"), []
        for number in range(layers):
            bias = RelativePositions(
                f"{stack}.{number if self.own_distances else 0}.self_attention.biased.weight",
                self.relative_attention_num_buckets,
                self.relative_attention_max_distance,
                bidirectional=alone,
            )
            own = replace(attention, score_bias=bias, causal=not alone)
            built.append(Layer(own, feed_forward, norm, "pre", cross=None if alone else attention))
        return Stack(Embedding(), tuple(built), norm)


MT5Config = family(
    "MT5Config",
    T5Config,
    "mt5",
    {"scale_decoder_outputs": False, "decoder_start_token_id": 0},
    usual_feed_forward="gated-gelu",
    of_the_file=frozenset({"scale_decoder_outputs"}),
)
"""mT5 (Xue et al. 2021): T5 1.1 for a hundred languages, whose logits are never scaled."""

UMT5Config = family(
    "UMT5Config", T5Config, "umt5", {"decoder_start_token_id": 0}, usual_feed_forward="gated-gelu", own_distances=True
)
"""UMT5 (Chung et al. 2023): T5 1.1 for a hundred languages, with a table of distances in every layer."""
