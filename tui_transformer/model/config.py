"""The built-in models: the transformer of the 2017 paper with its `config.json`, and attention alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from tui_transformer.engine.axis import Axis, Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Parameter
from tui_transformer.engine.program import Builder, Program
from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import BaseConfig, check_ids, sizes_line
from tui_transformer.model.checks import Check, layers_count, one_of, size_up_to, small, token_id
from tui_transformer.model.description import (
    NORM_PLACES,
    POSITIONS,
    Attention,
    Embedding,
    FeedForward,
    Head,
    Layer,
    Norm,
    Stack,
    Transformer,
)
from tui_transformer.model.layers import ACTIVATIONS, dot_product
from tui_transformer.model.sequence import Lengths, Sequence
from tui_transformer.records import dataclass, field, replace

ARCHITECTURES = ("encoder", "decoder", "encoder-decoder")
MAX_LENGTH = 4096


@dataclass(frozen=True)
class Config(BaseConfig):
    """Sizes and choices of a transformer as the 2017 paper has it.

    The defaults are those of the classic tutorials' encoder.

    Raises:
        UsageError: A size or choice that cannot be; the message names it and says what can.
    """

    model_type: ClassVar[str] = "vanilla"
    checks: ClassVar[Mapping[str, Check]] = {
        "architecture": one_of(ARCHITECTURES),
        **dict.fromkeys(("layers", "decoder_layers"), layers_count),
        **dict.fromkeys(("pad_id", "start_id"), token_id),
        "norm": one_of(NORM_PLACES),
        "norm_epsilon": small,
        "activation": one_of(tuple(ACTIVATIONS)),
        "positions": one_of(POSITIONS),
    }

    architecture: str = "encoder"
    vocab_size: int = 8
    d_model: int = 8
    heads: int = 8
    d_ff: int = 128
    layers: int = 1
    decoder_layers: int = 1
    max_length: int = MAX_LENGTH
    pad_id: int | None = None
    start_id: int | None = None
    norm: str = "post"
    norm_epsilon: float = 1e-5
    activation: str = "relu"
    positions: str = "sinusoidal"
    scale_embedding: bool = False
    bias: bool = False
    tie_output: bool = False
    causal: bool = False
    padding_mask: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.heads:
            divisors = [i for i in range(1, min(self.d_model, 4096) + 1) if self.d_model % i == 0]
            can_be = ", ".join(map(str, divisors[:12]))
            raise UsageError(f"d_model {self.d_model} is not divisible by {self.heads} heads: heads can be {can_be}")
        check_ids(self, "pad_id", "start_id")

    @property
    def places_by_mask(self) -> bool:
        """The first token that is no padding has the first place: it is what a decoder goes on from."""
        return self.architecture == "decoder"

    @property
    def has_decoder(self) -> bool:
        return self.architecture == "encoder-decoder"

    @property
    def stack(self) -> str:
        """The name that the steps of the first layers begin with."""
        return "decoder" if self.architecture == "decoder" else "encoder"

    @property
    def masks_future(self) -> bool:
        """A query may not look at later keys."""
        return self.causal or self.architecture == "decoder"

    @property
    def summary(self) -> str:
        return sizes_line(self.architecture, self.describe())

    def to_json(self) -> dict[str, Any]:
        values = super().to_json()
        unused = () if self.has_decoder else ("decoder_layers", "start_id")
        return {key: value for key, value in values.items() if key not in unused}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a decoder has as many layers where it says nothing else."""
        both = raw.get("architecture") == "encoder-decoder" and "layers" in raw
        return super().from_json({"decoder_layers": raw["layers"], **raw} if both else raw)

    def describe(self) -> Transformer:
        """Tokens → embedding → N layers → logits (Vaswani et al. 2017, figure 1)."""
        scale = math.sqrt(self.d_model) if self.scale_embedding else 1.0
        embedding = Embedding(scale=scale, positions=self.positions, max_length=self.max_length)
        attention = Attention(
            self.heads,
            self.d_model // self.heads,
            bias=self.bias,
            output_bias=self.bias,
            causal=self.masks_future,
        )
        feed_forward = FeedForward(self.d_ff, self.activation, bias=self.bias)
        layer = Layer(attention, feed_forward, Norm(self.norm_epsilon), self.norm)
        last = layer.norm if self.norm == "pre" else None
        first = Stack(embedding, (layer,) * self.layers, last)
        tied = embedding.table if self.tie_output else None
        head = Head(tied, bias=self.bias and tied is None)
        if not self.has_decoder:
            encoder, decoder = (None, first) if self.architecture == "decoder" else (first, None)
            return Transformer(self.vocab_size, self.d_model, encoder, decoder, head)
        causal, free = (replace(attention, causal=each) for each in (True, False))
        second = Stack(embedding, (replace(layer, attention=causal, cross=free),) * self.decoder_layers, last)
        return Transformer(self.vocab_size, self.d_model, first, second, head)


LARGEST = 4096
SCOPE = "encoder.0.self_attention"
EXAMPLE = {
    "query": ((1, 0.5, 0.1, 0.01), (0.2, 1.3, 0.2, 0.02), (1.2, 2.3, 3.2, 4.11)),
    "key": ((0.8, 0.3, 0.3, 0.03), (0.1, 0.9, 0.4, 0.04), (0.2, 0.3, 3, 1.11)),
    "value": ((1.2, 0.7, 0.5, 0.05), (0.5, 0.4, 0.6, 0.06), (2.2, 1.3, 0, 3.11)),
}
"""Q, K and V of the worked example that tutorials use."""


@dataclass(frozen=True)
class AttentionConfig(BaseConfig):
    """The shape of Q, K and V: length rows of width numbers, in one head."""

    model_type = "attention"
    checks = dict.fromkeys(("length", "width"), size_up_to(LARGEST))
    of_the_file = frozenset({"vocab_size", "pad_id"})

    length: int = 3
    width: int = 4
    causal: bool = True
    vocab_size: int = field(default=0, init=False)
    pad_id: int | None = field(default=None, init=False)

    @property
    def max_length(self) -> int:
        return self.length

    @property
    def summary(self) -> str:
        mask = "causal mask" if self.causal else "no mask"
        return f"scaled dot-product attention · {self.length} tokens · d_k {self.width} · {mask}"

    def program(self, lengths: Lengths) -> Program:
        """Q, K, V → scores → weights → context (Vaswani et al. 2017, equation 1)."""
        build = Builder()
        head, tokens, width = Axis("head", 1), Axis("token", self.length, "tokens"), Axis("head width", self.width)
        places = build.given("input.places", tokens)
        visible = build.given("input.visible", tokens)
        build = build.within(SCOPE)
        query, key, value = (
            build(name, Parameter(), build.weight(f"{name}.weight", head, tokens, width)) for name in EXAMPLE
        )
        given = Sequence("", places, visible, places)
        dot_product(build, query, key, value, given, given, Attention(1, self.width, causal=self.causal))
        return build.program()


def example_weight(name: str, _: Shape) -> Host:
    """A weight of that example."""
    return np.array([EXAMPLE[name.split(".")[-2]]], dtype=np.float64)
