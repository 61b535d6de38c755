"""A transformer described: every layer by its own values, then the whole. Nothing is built or computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from tui_transformer.engine.ops import Scale
from tui_transformer.engine.program import Builder
from tui_transformer.model.sequence import Sequence
from tui_transformer.records import dataclass

POSITIONS = ("sinusoidal", "learned", "none")
NORM_PLACES = ("post", "pre")
ACTIVATION_NAMES: Mapping[str, str] = {
    "relu": "relu",
    "relu2": "relu2",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "silu": "silu",
    "tanh": "tanh",
    "swish": "silu",
}
"""Names of activations in published configurations → a key of `layers.ACTIVATIONS`."""


@dataclass(frozen=True)
class Norm:
    """Which norm: layer norm (Ba et al. 2016) or RMS norm (Zhang & Sennrich 2019).

    Attributes:
        kind: "layer" or "rms".
        shift: A layer norm has β.
    """

    epsilon: float
    kind: str = "layer"
    shift: bool = True


@dataclass(frozen=True)
class Rotary:
    """Rotary positions (Su et al. 2021): the first `width` columns of a head are turned by place · frequency.

    Attributes:
        frequencies: Of every pair of columns, in radians a token.
        factor: What turned columns are multiplied by.
        beyond: Sentences of more tokens have the frequencies that `longer` gives for their length.
        longer: None where the length changes nothing.
    """

    frequencies: tuple[float, ...]
    factor: float = 1.0
    beyond: int = 0
    longer: Callable[[int], tuple[float, ...]] | None = None

    def of(self, tokens: int) -> tuple[float, ...]:
        """The frequencies for a sentence of this many tokens."""
        return self.frequencies if self.longer is None or tokens <= self.beyond else self.longer(tokens)


class ScoreBias(Protocol):
    """A term that is added to scores after scaling, such as a bias by distance."""

    def add(self, build: Builder, scores: str, query: str, key: str, queries: Sequence, keys: Sequence) -> str:
        """Add the step `biased`, and what it needs, inside an attention; gives its name."""


@dataclass(frozen=True)
class Attention:
    """One attention.

    Attributes:
        width: d_k.
        kv_heads: Key and value heads; each serves heads ÷ kv_heads query heads. 0 for as many as query heads.
        bias: Query, key and value have one.
        output_bias: The output has one.
        scale: What scores are multiplied by; None for 1 ÷ √d_k.
        rotary: Rotary positions, where this layer has them.
        head_norm: Norm of every query and key head, before they are turned.
        head_norms: How: "alike" where all heads share its weights, "own" where every head has its own, "together" where
            the heads of a token are one row.
        causal: A query sees no later key.
        window: How many keys a query sees, its own the last (not causal: those less than `window` places away on
            either side); None for all.
        cap: Scaled scores are capped softly at this.
        score_bias: What is added to the scores.
        sink: Every head has a score that takes part in the softmax and gives its share to no key.
    """

    heads: int
    width: int
    kv_heads: int = 0
    bias: bool = False
    output_bias: bool = False
    scale: Scale | None = None
    rotary: Rotary | None = None
    head_norm: Norm | None = None
    head_norms: str = "alike"
    causal: bool = False
    window: int | None = None
    cap: float | None = None
    score_bias: ScoreBias | None = None
    sink: bool = False


@dataclass(frozen=True)
class FeedForward:
    """One feed-forward layer.

    Attributes:
        width: d_ff.
        activation: A key of `layers.ACTIVATIONS`.
        gated: The activation of one product gates another (Shazeer 2020).
        bias: Every matrix has one.
        limit: How far gate (from above) and hidden values (on both sides) may go; the activation is then g σ(α g).
        alpha: Of that.
    """

    width: int
    activation: str
    gated: bool = False
    bias: bool = False
    limit: float | None = None
    alpha: float = 1.0


@dataclass(frozen=True)
class Experts:
    """Several feed-forward layers, of which every token chooses a few (Shazeer et al. 2017).

    Attributes:
        among_chosen: The shares of the chosen add up to 1; otherwise they are those of a softmax over all.
        shared: An expert of all tokens, with a share of its own.
    """

    count: int
    chosen: int
    each: FeedForward
    among_chosen: bool = True
    router_bias: bool = False
    shared: FeedForward | None = None

    @property
    def width(self) -> int:
        """Of one expert."""
        return self.each.width


@dataclass(frozen=True)
class Layer:
    """One layer of a stack.

    Attributes:
        place: "post": norm(x + f(x)); "pre": x + f(norm(x)); "both": x + norm(f(norm(x))); "output": x + norm(f(x));
            "none": x + f(x).
        attention_place: The same for the attention, where it differs.
        parallel: "one norm" or "two norms": both sublayers read what enters, through one norm or each through its own;
            "" where the feed-forward layer reads what the attention gave.
        residual_scale: What a sublayer says is multiplied by before it is added.
        cross: Attention to the encoder's output, between the two.
        source: The number of the layer whose weights are used, with numbers of layers inside it; None for its own.
    """

    attention: Attention
    feed_forward: FeedForward | Experts
    norm: Norm
    place: str
    attention_place: str = ""
    parallel: str = ""
    residual_scale: float = 1.0
    cross: Attention | None = None
    source: str | None = None


def biased_layer(d_model: int, heads: int, d_ff: int, activation: str, norm: Norm, place: str) -> Layer:
    """The encoder layer of the 2017 paper, with every bias; the activation under its published name."""
    attention = Attention(heads, d_model // heads, bias=True, output_bias=True)
    feed_forward = FeedForward(d_ff, ACTIVATION_NAMES[activation], bias=True)
    return Layer(attention, feed_forward, norm, place)


@dataclass(frozen=True)
class Embedding:
    """The embedding: the vectors that are added up before layer 0.

    Attributes:
        table: The weight of the token embedding, which an encoder and a decoder may share.
        width: Of the table, which is projected after the norm; 0 for the model's, without a projection.
        projected_first: It comes before positions are added, which have the model's width, and has no bias.
        scale: What the rows of the table are multiplied by.
        positions: "sinusoidal", "halves" (sines, then cosines), "fairseq" (the same, up to a wave of 2π · 10000 places,
            and counting no padding), "learned" or "none".
        silent: The place whose row of sines is 0.
        max_length: Rows of a learned table of positions.
    """

    table: str = "embedding.tokens.weight"
    width: int = 0
    projected_first: bool = False
    scale: float = 1.0
    positions: str = "none"
    silent: int | None = None
    max_length: int = 0
    segments: int = 0
    norm: Norm | None = None


@dataclass(frozen=True)
class Transform:
    """Layers of a head: a matrix, and where they are there an activation and a norm.

    Attributes:
        width: What comes out; 0 for the model's.
        activation: A key of `layers.ACTIVATIONS`, "" for none.
    """

    width: int = 0
    activation: str = ""
    norm: Norm | None = None
    bias: bool = True


@dataclass(frozen=True)
class Head:
    """The head that gives a logit for every word.

    Attributes:
        tied: The embedding table that is used again; None for a matrix of its own.
        scale: What the logits are multiplied by.
        cap: Logits are capped softly at this.
        transform: What comes before.
    """

    tied: str | None = None
    bias: bool = False
    scale: float = 1.0
    cap: float | None = None
    transform: Transform | None = None


@dataclass(frozen=True)
class LabelHead:
    """The head that gives a logit for every label of a classifier.

    Attributes:
        pool: How the tokens become one vector, a key of `engine.ops.pooling.SHARES`; "" for labels of every token.
        until_end: Tokens behind the last that ends a text have no part in it.
        transform: What comes before.
        shares: "softmax" where one label is right, "sigmoid" where any may be, "" where the logits are no scores.
    """

    labels: tuple[str, ...]
    pool: str = ""
    transform: Transform | None = None
    bias: bool = True
    shares: str = "softmax"
    until_end: bool = False


@dataclass(frozen=True)
class SentenceHead:
    """The head that makes one vector of a sentence (Reimers & Gurevych 2019, §3).

    Attributes:
        pools: How the tokens become one vector, keys of `engine.ops.pooling.SHARES`; the vectors of several stand side
            by side.
        then: What follows: matrices, and None where the vector is brought to length 1.
        most_tokens: How many tokens a text may have; None for what the layers read.
    """

    pools: tuple[str, ...]
    then: tuple[Transform | None, ...] = ()
    most_tokens: int | None = None


@dataclass(frozen=True)
class Stack:
    """The encoder or the decoder.

    Attributes:
        norm: After the last layer, where there is one.
        distances: How many vectors there are for distances from query to key, which the attentions of all layers read
            (He et al. 2021); 0 for none.
        distances_norm: Norm of these, where there is one.
        projected: Width that what leaves it is brought to, by a matrix without a bias; 0 for the model's.
    """

    embedding: Embedding
    layers: tuple[Layer, ...]
    norm: Norm | None = None
    distances: int = 0
    distances_norm: Norm | None = None
    projected: int = 0


@dataclass(frozen=True)
class Transformer:
    """A whole model: an encoder, a decoder, or both.

    Attributes:
        d_model: Width of the residual stream.
        decoder: The stack of that name; with an encoder, its layers have a `cross`.
        head: None where the model gives states alone.
        target_vocab_size: Words that a decoder beside an encoder reads and writes, where they are others; 0 for the
            same.
    """

    vocab_size: int
    d_model: int
    encoder: Stack | None = None
    decoder: Stack | None = None
    head: Head | LabelHead | SentenceHead | None = None
    target_vocab_size: int = 0
