"""Encoders that were trained to fill in masked words (Devlin et al. 2018): what BERT, DistilBERT and RoBERTa share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Linear, Mask
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
from tui_transformer.model.embedding import Embedding, embed
from tui_transformer.model.families.base import Lengths, Stored, as_it_is, transposed
from tui_transformer.model.layers import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    ALL_MATRICES,
    Layout,
    Norm,
    encoder_layer,
    logits,
    norm,
    sequence,
)

ONLY: Mapping[str, object] = {
    "is_decoder": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "position_embedding_type": "absolute",
    "pruned_heads": {},
}
"""Settings that change the computation, and the one value that is computed here."""

MATRICES = frozenset({"query", "key", "value", "output", "hidden", "logits"})
"""Steps whose weight is stored out × in."""

TABLE, HEAD, TRANSFORM = "embedding.tokens.weight", "output.logits.weight", "output.transform.hidden.weight"

OLD_ENDINGS = {"weight": "gamma", "bias": "beta"}
"""What the weights of a layer norm were called once."""


@dataclass(frozen=True)
class MaskedWordConfig:
    """Sizes and choices of the encoder. A family gives the names that they have in its `config.json`.

    Attributes:
        position_rows: Rows of the table of positions.
        segments: Segments (token types), 0 for none.
        activation: A key of `ACTIVATION_NAMES`.
        sinusoidal: Positions are sines and cosines and not in the file.
        tie_output: The head uses the embedding table again.
        head: The file has the head that gives a logit for every word; only its tensors tell.

    Raises:
        UsageError: A size or choice that cannot be; the message names it as the file does.
    """

    model_type: ClassVar[str]
    keys: ClassVar[Mapping[str, str]]
    other_names: ClassVar[Mapping[str, str]] = {}

    vocab_size: int = 30522
    d_model: int = 768
    heads: int = 12
    d_ff: int = 3072
    layers: int = 12
    position_rows: int = 512
    segments: int = 0
    pad_id: int | None = 0
    activation: str = "gelu"
    norm_epsilon: float = 1e-12
    sinusoidal: bool = False
    tie_output: bool = True
    head: bool = False

    def __post_init__(self) -> None:
        for field, key in self.keys.items():
            _CHECKS[field](key, getattr(self, field))
        if self.d_model % self.heads:
            width, heads = self.keys["d_model"], self.keys["heads"]
            raise UsageError(f"{width} {self.d_model} is not divisible by {heads} {self.heads}")
        if (self.pad_id or 0) >= self.vocab_size:
            key = self.keys["pad_id"]
            raise UsageError(f"{key} {shown(self.pad_id)} is outside the vocabulary of {self.vocab_size}")

    @property
    def max_length(self) -> int:
        """A position for every token."""
        return self.position_rows

    @property
    def has_decoder(self) -> bool:
        """There is one sequence."""
        return False

    @property
    def start_id(self) -> int | None:
        """There is no decoder."""
        return None

    @property
    def head_activation(self) -> str:
        """The activation in the head."""
        return self.activation

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        heads, layers = _counted(self.heads, "head"), _counted(self.layers, "layer")
        return f"{self.model_type} · d_model {self.d_model} · {heads} · d_ff {self.d_ff} · {layers}"

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        return {"model_type": self.model_type, **{key: getattr(self, field) for field, key in self.keys.items()}}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; keys that change nothing are left alone."""
        check_settings(raw, ONLY)
        raw = renamed(raw, cls.other_names)
        return cls(**{field: raw[key] for field, key in cls.keys.items() if key in raw})


_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("vocab_size", "d_model", "heads", "d_ff", "position_rows", "segments"), size_up_to(LARGEST_SIZE)),
    "layers": size_up_to(MOST_LAYERS),
    "pad_id": token_id,
    "activation": one_of(tuple(ACTIVATION_NAMES)),
    "norm_epsilon": small,
    **dict.fromkeys(("sinusoidal", "tie_output"), truth),
}


def program(config: MaskedWordConfig, lengths: Lengths) -> Program:
    """Tokens → embedding → N layers, and where the file has the head → logits (Devlin et al. 2018, §3)."""
    build, layout = Builder(), layout_of(config)
    vocabulary = Axis("vocabulary", config.vocab_size)
    tokens = sequence(build, "tokens", lengths.tokens)
    x = embed(build, tokens, vocabulary, layout, _embedding(config))
    encoder = build.within("encoder")
    for i in range(config.layers):
        x = encoder_layer(encoder.within(str(i)), x, tokens, layout, Mask())
    if config.head:
        _head(build, x, config, layout, vocabulary)
    return build.program()


def layout_of(config: MaskedWordConfig) -> Layout:
    """What the layers need of the configuration: the 2017 paper's encoder, with every bias."""
    return Layout(
        d_model=config.d_model,
        heads=config.heads,
        d_ff=config.d_ff,
        norm=Norm(config.norm_epsilon),
        place="post",
        activation=ACTIVATION_NAMES[config.activation],
        head_width=config.d_model // config.heads,
        kv_heads=config.heads,
        bias=ALL_MATRICES,
    )


def _embedding(config: MaskedWordConfig) -> Embedding:
    return Embedding(
        positions="sinusoidal" if config.sinusoidal else "learned",
        max_length=config.position_rows,
        segments=config.segments,
        norm=Norm(config.norm_epsilon),
    )


def _head(build: Builder, x: str, config: MaskedWordConfig, layout: Layout, vocabulary: Axis) -> None:
    """A matrix, activation and norm of its own, then a logit for every word."""
    inner = build.within("output.transform")
    weight = inner.weight("hidden.weight", layout.model, layout.model)
    x = inner("hidden", Linear("x W"), x, weight, inner.weight("hidden.bias", layout.model))  # n × d
    x = inner("activation", ACTIVATIONS[ACTIVATION_NAMES[config.head_activation]](), x)
    x = norm(inner, x, layout)
    tied = TABLE if config.tie_output else None
    logits(build, x, vocabulary, layout.model, tied=tied, bias=True)  # n × v


@dataclass(frozen=True)
class MaskedWordTensors:
    """Where the weights of an encoder and its head are in a file.

    Attributes:
        prefix: In front of the names of the encoder; a file of the encoder alone leaves it out.
        names: Steps ({} stands for the layer) and what their tensors are called.
    """

    prefix: str
    names: Mapping[str, str]

    def stored(self, config: MaskedWordConfig, name: str, names: frozenset[str]) -> Stored:
        """Where a weight is; the embedding table is in the head, where they are tied and a file has only this one."""
        step, _, kind = name.rpartition(".")
        tensor = self._in_file(name, names)
        if name == TABLE and config.tie_output and tensor not in names and self.has(HEAD, names):
            tensor = self._in_file(HEAD, names)
        matrix = kind == "weight" and step.rpartition(".")[2] in MATRICES
        return Stored(tensor, transposed if matrix else as_it_is)

    def has(self, name: str, names: frozenset[str]) -> bool:
        """Whether a file has a weight, under its own name or the family's."""
        return name in names or self._in_file(name, names) in names

    def fitted(self, config: MaskedWordConfig, names: frozenset[str]) -> MaskedWordConfig:
        """With the head, where the file has it, tied or not."""
        own = self.has(HEAD, names) and self.has(TABLE, names)
        return replace(config, head=self.has(TRANSFORM, names), tie_output=config.tie_output and not own)

    def copies(self, config: MaskedWordConfig, names: frozenset[str]) -> Mapping[str, str]:
        """The matrix of the head is the embedding table again, where they are tied."""
        return {self._in_file(HEAD, names): self._in_file(TABLE, names)} if config.tie_output else {}

    def _in_file(self, name: str, names: frozenset[str]) -> str:
        """The tensor of a weight.

        Old files have `gamma` and `beta`; a head keeps its bias beside or inside its `decoder`.
        """
        step, _, kind = name.rpartition(".")
        tensor = self.names[re.sub(r"\d+", "{}", step)].format(*re.findall(r"\d+", step))
        bases = (tensor, tensor.removeprefix(self.prefix), tensor.removesuffix(".decoder"))
        spellings = [f"{base}.{ending}" for base in bases for ending in (kind, OLD_ENDINGS[kind])]
        return next((each for each in spellings if each in names), spellings[0])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number > 1 else "")
