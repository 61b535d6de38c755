"""The layers, written like the paper: one line a step, a shape where the shape changes.

n tokens (queries), m keys, d model width, h heads, g key/value heads, d_k width of a head, f feed-forward width,
v vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import (
    Add,
    Context,
    Extend,
    Gate,
    Gelu,
    GeluTanh,
    Given,
    LayerNorm,
    Linear,
    Mask,
    MergeHeads,
    Op,
    Project,
    Relu,
    RmsNorm,
    Rotate,
    Scale,
    Scores,
    Silu,
    Softmax,
    Unembed,
)
from tui_transformer.engine.program import Builder

ACTIVATIONS: dict[str, Callable[[], Op]] = {"relu": Relu, "gelu": Gelu, "gelu_tanh": GeluTanh, "silu": Silu}
ACTIVATION_NAMES: Mapping[str, str] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
"""What published configurations call the activations → a key of `ACTIVATIONS`."""
POSITIONS = ("sinusoidal", "learned", "none")
NORM_PLACES = ("post", "pre")
ATTENTION_MATRICES = frozenset({"query", "key", "value", "output"})
FEED_FORWARD_MATRICES = frozenset({"hidden", "feed_forward.output"})
ALL_MATRICES = ATTENTION_MATRICES | FEED_FORWARD_MATRICES


@dataclass(frozen=True)
class Norm:
    """Which norm: layer norm (Ba et al. 2016) or RMS norm (Zhang & Sennrich 2019), and its ε."""

    epsilon: float
    kind: str = "layer"


@dataclass(frozen=True)
class Rotary:
    """Rotary positions (Su et al. 2021): the first `width` columns of a head are turned by place · frequency.

    Attributes:
        frequencies: Of every pair of columns, in radians a token.
        factor: What turned columns are multiplied by.
    """

    frequencies: tuple[float, ...]
    factor: float = 1.0

    @property
    def width(self) -> int:
        """Columns that are turned: two for every frequency."""
        return 2 * len(self.frequencies)


@dataclass(frozen=True)
class Layout:
    """What every layer of a stack has in common.

    Attributes:
        d_model: Width of the residual stream.
        heads: Query heads.
        d_ff: Width inside the feed-forward layer.
        norm: Which norm.
        place: "post": norm(x + f(x)); "pre": x + f(norm(x)).
        activation: A key of `ACTIVATIONS`.
        head_width: d_k.
        kv_heads: Key and value heads; each serves heads ÷ kv_heads query heads.
        bias: The matrices that have a bias.
        gated: The activation of one product gates another (Shazeer 2020).
        rotary: Rotary positions, where the model has them.
        head_norm: Norm of every query and key head, where the model has it.
        scaled: Scores are divided by √d_k.
        divisor: What scores are divided by besides.
        window: How many keys a query sees, its own the last; None for all.
    """

    d_model: int
    heads: int
    d_ff: int
    norm: Norm
    place: str
    activation: str
    head_width: int
    kv_heads: int
    bias: frozenset[str] = frozenset()
    gated: bool = False
    rotary: Rotary | None = None
    head_norm: Norm | None = None
    scaled: bool = True
    divisor: float = 1.0
    window: int | None = None

    @property
    def model(self) -> Axis:
        """The axis of the residual stream."""
        return Axis("model", self.d_model)


@dataclass(frozen=True)
class Sequence:
    """The tokens of one side: the names of its inputs.

    Attributes:
        tokens: IDs; "" where only keys and values of them are left.
        places: Places of the tokens.
        visible: Which keys are real tokens.
        kept: Axis of the tokens before, whose keys and values were kept; None where all are computed.
        key_places: Places of the keys: of the tokens before as well.
    """

    tokens: str
    places: str
    visible: str
    kept: Axis | None = None
    key_places: str = ""

    @property
    def keys(self) -> str:
        """Places of everything that can be looked at."""
        return self.key_places or self.places


Bias = Callable[[Builder, str, Sequence, Sequence], str]
"""Adds a step `biased` after the scaled scores, and gives its name."""


NEW = "new "
"""In front of the name of a sequence of which only the last tokens are computed."""


def sequence(build: Builder, label: str, length: int, past: int = 0) -> Sequence:
    """The inputs of a token sequence: IDs, places 0, 1, 2 … and which are real tokens (not padding).

    Keys and values of the first `past` tokens were kept: only the `length` tokens after them are computed.
    """
    axis, every = Axis("token", length, f"{NEW}{label}" if past else label), Axis("token", past + length, label)
    tokens = build("tokens", Given(), _input(build, "ids", axis))
    places, visible = _input(build, "places", axis), _input(build, "visible", every)
    if not past:
        return Sequence(tokens, places, visible)
    return Sequence(tokens, places, visible, Axis("token", past, label), _input(build, "key_places", every))


def kept_sequence(build: Builder, label: str, length: int) -> Sequence:
    """A sequence that was computed before, as far as another looks at it."""
    axis = Axis("token", length, label)
    return Sequence("", _input(build, "places", axis), _input(build, "visible", axis))


def _input(build: Builder, name: str, axis: Axis) -> str:
    return build.given(build.full(f"input.{name}"), axis)


def attention(
    build: Builder,
    x: str,
    memory: str,
    queries: Sequence,
    keys: Sequence,
    layout: Layout,
    mask: Mask,
    bias: Bias | None = None,
) -> str:
    """softmax(Q Kᵀ ÷ √d_k) V in every head, heads side by side, times W_O (Vaswani et al. 2017, §3.2)."""
    query = _heads(build, "query", "Q", x, layout.heads, layout)  # n × d → h × n × d_k
    key = _heads(build, "key", "K", memory, layout.kv_heads, layout)  # m × d → g × m × d_k
    value = _heads(build, "value", "V", memory, layout.kv_heads, layout)
    if layout.head_norm is not None:
        query, key = (_head_norm(build, name, layout.head_norm, layout) for name in (query, key))
    if layout.rotary is not None:
        turn = Rotate(layout.rotary.frequencies, layout.rotary.factor)
        query = build("query_rotated", turn, query, queries.places)
        key = build("key_rotated", turn, key, keys.places)
    if keys.kept is not None:
        key, value = (_extended(build, name, new, keys.kept) for name, new in (("key", key), ("value", value)))
    return _attend(build, query, key, value, queries, keys, layout, mask, bias)


def attention_to_kept(build: Builder, x: str, queries: Sequence, keys: Sequence, layout: Layout, mask: Mask) -> str:
    """The same, to keys and values that were all kept."""
    query = _heads(build, "query", "Q", x, layout.heads, layout)
    (all_keys,) = build.known[keys.visible]
    key, value = (_kept(build, name, all_keys, layout.kv_heads, layout.head_width) for name in ("key", "value"))
    return _attend(build, query, key, value, queries, keys, layout, mask)


def _attend(
    build: Builder,
    query: str,
    key: str,
    value: str,
    queries: Sequence,
    keys: Sequence,
    layout: Layout,
    mask: Mask,
    bias: Bias | None = None,
) -> str:
    """From queries, keys and values to what the heads say together."""
    scale = scaling(layout.head_width, scaled=layout.scaled, divisor=layout.divisor)
    context = dot_product(build, query, key, value, queries, keys, mask, scale=scale, bias=bias)
    concat = build("concat", MergeHeads(), context)  # h × n × d_k → n × h·d_k
    inner = Axis("heads · width", layout.heads * layout.head_width)
    return build("output", Linear("concat W_O"), concat, *_matrix(build, "output", inner, layout.model, layout))


def _extended(build: Builder, name: str, new: str, past: Axis) -> str:
    """The kept rows of keys or values, and the new ones after them."""
    heads, _, width = build.known[new]
    return build(f"{name}_cached", Extend(), _kept(build, name, past, heads.size, width.size), new)


def _kept(build: Builder, name: str, past: Axis, heads: int, width: int) -> str:
    """The kept rows of keys or values: they come from outside."""
    return build.given(build.full(f"{name}_kept"), Axis("head", heads), past, Axis("head width", width))


def dot_product(
    build: Builder,
    query: str,
    key: str,
    value: str,
    queries: Sequence,
    keys: Sequence,
    mask: Mask,
    *,
    scale: Scale | None = None,
    bias: Bias | None = None,
) -> str:
    """softmax(Q Kᵀ ÷ √d_k) V (Vaswani et al. 2017, equation 1)."""
    share = build.known[query][0].size // build.known[key][0].size
    scores = build("scores", Scores(share), query, key)  # h × n × m
    states = build("scaled", scale or scaling(build.known[query][-1].size), scores)
    if bias is not None:
        states = bias(build, states, queries, keys)
    masked = build("masked", mask, states, queries.places, keys.keys, keys.visible)
    weights = build("weights", Softmax(), masked)
    return build("context", Context(share), weights, value)  # h × n × d_k


def scaling(width: int, *, scaled: bool = True, divisor: float = 1.0) -> Scale:
    """÷ √d_k (Vaswani et al. 2017, §3.2.1), where scores are divided by it, and ÷ what a layer divides by besides."""
    parts = [f"√{width}"] * scaled + [f"{divisor:g}"] * (divisor != 1.0)
    factor = (1.0 / math.sqrt(width) if scaled else 1.0) / divisor
    return Scale(factor, " ".join(f"÷ {part}" for part in parts) or "not divided")


def feed_forward(build: Builder, x: str, layout: Layout) -> str:
    """f(x W₁ + b₁) W₂ + b₂ at every token (Vaswani et al. 2017, §3.3); gated: (f(x W_g) · x W₁) W₂ (Shazeer 2020)."""
    inner = Axis("feed-forward", layout.d_ff)
    hidden = build("hidden", Linear("x W₁"), x, *_matrix(build, "hidden", layout.model, inner, layout))
    if layout.gated:
        gate = build("gate", Linear("x W_g"), x, *_matrix(build, "gate", layout.model, inner, layout))
        active = build("activation", ACTIVATIONS[layout.activation](), gate)
        active = build("gated", Gate(), active, hidden)
    else:
        active = build("activation", ACTIVATIONS[layout.activation](), hidden)
    weights = _matrix(build, "output", inner, layout.model, layout, key="feed_forward.output")
    return build("output", Linear("a W₂"), active, *weights)  # n × f → n × d


def norm(build: Builder, x: str, layout: Layout, name: str = "norm") -> str:
    """The layout's norm with weights of its own."""
    return apply_norm(build, name, x, layout.norm, layout.model)


def apply_norm(build: Builder, name: str, x: str, kind: Norm, axis: Axis) -> str:
    """Layer norm with γ and β, or RMS norm with γ alone."""
    weight = build.weight(f"{name}.weight", axis)
    if kind.kind == "rms":
        return build(name, RmsNorm(kind.epsilon), x, weight)
    return build(name, LayerNorm(kind.epsilon), x, weight, build.weight(f"{name}.bias", axis))


def sublayer(build: Builder, x: str, layout: Layout, apply: Callable[[Builder, str], str]) -> str:
    """Add & norm around a sublayer: norm(x + f(x)) where the norm comes after, x + f(norm(x)) where it comes before."""
    if layout.place == "pre":
        return build("residual", Add(), x, apply(build, norm(build, x, layout)))
    return norm(build, build("residual", Add(), x, apply(build, x)), layout)


def self_attention(
    build: Builder, x: str, tokens: Sequence, layout: Layout, mask: Mask, bias: Bias | None = None
) -> str:
    """Attention to the same sequence, add & norm."""

    def attend(inner: Builder, states: str) -> str:
        return attention(inner, states, states, tokens, tokens, layout, mask, bias)

    return sublayer(build.within("self_attention"), x, layout, attend)


def cross_attention(
    build: Builder, x: str, memory: str | None, tokens: Sequence, source: Sequence, layout: Layout
) -> str:
    """Attention from the decoder's tokens to the encoder's output, add & norm; to what was kept of that where None."""

    def attend(inner: Builder, states: str) -> str:
        if memory is None:
            return attention_to_kept(inner, states, tokens, source, layout, Mask())
        return attention(inner, states, memory, tokens, source, layout, Mask())

    return sublayer(build.within("cross_attention"), x, layout, attend)


def encoder_layer(
    build: Builder, x: str, tokens: Sequence, layout: Layout, mask: Mask, bias: Bias | None = None
) -> str:
    """Self-attention, add & norm, feed-forward, add & norm (Vaswani et al. 2017, figure 1)."""
    x = self_attention(build, x, tokens, layout, mask, bias)
    x = sublayer(build.within("feed_forward"), x, layout, lambda inner, states: feed_forward(inner, states, layout))
    build.alias("output", x)
    return x


def decoder_layer(
    build: Builder,
    x: str,
    memory: str | None,
    tokens: Sequence,
    source: Sequence,
    layout: Layout,
    bias: Bias | None = None,
) -> str:
    """Masked self-attention, cross-attention, feed-forward, each with add & norm (Vaswani et al. 2017, figure 1)."""
    x = self_attention(build, x, tokens, layout, Mask(causal=True), bias)
    x = cross_attention(build, x, memory, tokens, source, layout)
    x = sublayer(build.within("feed_forward"), x, layout, lambda inner, states: feed_forward(inner, states, layout))
    build.alias("output", x)
    return x


def logits(
    build: Builder, x: str, vocabulary: Axis, model: Axis, *, tied: str | None, bias: bool, scale: float = 1.0
) -> str:
    """A logit for every word, then shares that sum to 1.

    `tied` names the embedding table that is used again; None for a matrix of its own.
    """
    build = build.within("output")
    biases = (build.weight("logits.bias", vocabulary),) if bias else ()
    if tied is not None:
        scores = build("logits", Unembed(scale), x, tied, *biases)  # n × v
    else:
        scores = build("logits", Linear("x W"), x, build.weight("logits.weight", model, vocabulary), *biases)
    return build("probabilities", Softmax(), scores)


def _heads(build: Builder, name: str, letter: str, x: str, heads: int, layout: Layout) -> str:
    """A projection, split into heads."""
    out = Axis("heads · width", heads * layout.head_width)
    return build(name, Project(layout.head_width, letter), x, *_matrix(build, name, layout.model, out, layout))


def _head_norm(build: Builder, step: str, kind: Norm, layout: Layout) -> str:
    """The norm of every head of a query or key."""
    name = step.rpartition(".")[2] + "_norm"
    return apply_norm(build, name, step, kind, Axis("head width", layout.head_width))


def _matrix(build: Builder, name: str, inner: Axis, out: Axis, layout: Layout, key: str = "") -> tuple[str, ...]:
    """The weight `name.weight` (in × out) and, where the layout has one, `name.bias`."""
    weight = build.weight(f"{name}.weight", inner, out)
    return (weight, build.weight(f"{name}.bias", out)) if (key or name) in layout.bias else (weight,)
