"""The layers, written like the paper: one line a step, a shape where the shape changes.

n tokens (queries), m keys, d model width, h heads, d_k width of a head, f feed-forward width, v vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import (
    Add,
    Context,
    Embed,
    Gelu,
    Given,
    LayerNorm,
    Linear,
    Mask,
    MergeHeads,
    Op,
    Project,
    Relu,
    Scale,
    Scores,
    Sinusoid,
    Softmax,
    Unembed,
)
from tui_transformer.engine.program import Builder

ACTIVATIONS: dict[str, Callable[[], Op]] = {"relu": Relu, "gelu": Gelu}
POSITIONS = ("sinusoidal", "learned", "none")
NORM_PLACES = ("post", "pre")


@dataclass(frozen=True)
class Sizes:
    """What every layer of a stack has in common."""

    d_model: int
    heads: int
    d_ff: int
    bias: bool
    activation: str
    norm: str
    epsilon: float

    @property
    def model(self) -> Axis:
        """The axis of the residual stream."""
        return Axis("model", self.d_model)

    @property
    def head_width(self) -> int:
        """d_k."""
        return self.d_model // self.heads


@dataclass(frozen=True)
class Sequence:
    """The tokens of one side: the names of its inputs."""

    tokens: str
    places: str
    visible: str


def sequence(build: Builder, label: str, length: int, prefix: str = "") -> Sequence:
    """The inputs of a token sequence: IDs, places 0, 1, 2 … and which are real tokens (not padding)."""
    axis = Axis("token", length, label)
    ids = build.given(f"{prefix}input.ids", axis)
    tokens = build("tokens", Given(), ids)
    return Sequence(tokens, build.given(f"{prefix}input.places", axis), build.given(f"{prefix}input.visible", axis))


def embedding(
    build: Builder, tokens: Sequence, vocabulary: Axis, sizes: Sizes, positions: str, max_length: int, *, scaled: bool
) -> str:
    """Rows of the table, plus positional encoding (Vaswani et al. 2017, §3.4 and §3.5)."""
    build = build.within("embedding")
    table = build.weight("tokens.weight", vocabulary, sizes.model)
    scale = math.sqrt(sizes.d_model) if scaled else 1.0
    words = build("tokens", Embed(scale), tokens.tokens, table)  # n → n × d
    if positions == "none":
        build.alias("output", words)
        return words
    if positions == "learned":
        rows = build.weight("positions.weight", Axis("position", max_length), sizes.model)
        places = build("positions", Embed(ids="pos"), tokens.places, rows)  # n × d
    else:
        places = build("positions", Sinusoid(sizes.d_model), tokens.places)  # n × d
    return build("output", Add("token + position"), words, places)


def attention(build: Builder, x: str, memory: str, queries: Sequence, keys: Sequence, sizes: Sizes, mask: Mask) -> str:
    """softmax(Q Kᵀ ÷ √d_k) V in every head, heads side by side, times W_O (Vaswani et al. 2017, §3.2)."""
    query = build("query", Project(sizes.head_width, "Q"), x, *_matrix(build, "query", sizes, sizes.model))
    key = build("key", Project(sizes.head_width, "K"), memory, *_matrix(build, "key", sizes, sizes.model))
    value = build("value", Project(sizes.head_width, "V"), memory, *_matrix(build, "value", sizes, sizes.model))
    context = scaled_dot_product(build, query, key, value, (queries.places, keys.places, keys.visible), mask)
    concat = build("concat", MergeHeads(), context)  # h × n × d_k → n × h·d_k
    return build("output", Linear("concat W_O"), concat, *_matrix(build, "output", sizes, sizes.model))  # n × d


def scaled_dot_product(
    build: Builder, query: str, key: str, value: str, places: tuple[str, str, str], mask: Mask
) -> str:
    """softmax(Q Kᵀ ÷ √d_k) V (Vaswani et al. 2017, equation 1)."""
    width = build.known[query][-1].size
    scores = build("scores", Scores(), query, key)  # h × n × m
    scaled = build("scaled", Scale(1.0 / math.sqrt(width), f"÷ √{width}"), scores)
    masked = build("masked", mask, scaled, *places)
    weights = build("weights", Softmax(), masked)
    return build("context", Context(), weights, value)  # h × n × d_k


def feed_forward(build: Builder, x: str, sizes: Sizes) -> str:
    """f(x W₁ + b₁) W₂ + b₂ at every token (Vaswani et al. 2017, §3.3)."""
    inner = Axis("feed-forward", sizes.d_ff)
    hidden = build("hidden", Linear("x W₁"), x, *_matrix(build, "hidden", sizes, inner))  # n × f
    active = build("activation", ACTIVATIONS[sizes.activation](), hidden)
    return build("output", Linear("a W₂"), active, *_matrix(build, "output", sizes, sizes.model, inner))  # n × d


def norm(build: Builder, x: str, sizes: Sizes, name: str = "norm") -> str:
    """Layer norm with its own γ and β."""
    weight, bias = build.weight(f"{name}.weight", sizes.model), build.weight(f"{name}.bias", sizes.model)
    return build(name, LayerNorm(sizes.epsilon), x, weight, bias)


def sublayer(build: Builder, x: str, sizes: Sizes, apply: Callable[[Builder, str], str]) -> str:
    """Add & norm around a sublayer: norm(x + f(x)) where the norm comes after, x + f(norm(x)) where it comes before."""
    if sizes.norm == "pre":
        return build("residual", Add(), x, apply(build, norm(build, x, sizes)))
    return norm(build, build("residual", Add(), x, apply(build, x)), sizes)


def encoder_layer(build: Builder, x: str, tokens: Sequence, sizes: Sizes, mask: Mask) -> str:
    """Self-attention, add & norm, feed-forward, add & norm (Vaswani et al. 2017, figure 1)."""

    def attend(inner: Builder, states: str) -> str:
        return attention(inner, states, states, tokens, tokens, sizes, mask)

    x = sublayer(build.within("self_attention"), x, sizes, attend)
    x = sublayer(build.within("feed_forward"), x, sizes, lambda inner, states: feed_forward(inner, states, sizes))
    build.alias("output", x)
    return x


def encoder(build: Builder, x: str, tokens: Sequence, layers: int, sizes: Sizes, mask: Mask) -> str:
    """N layers, and a last norm where the norms come before the sublayers."""
    for i in range(layers):
        x = encoder_layer(build.within(str(i)), x, tokens, sizes, mask)
    return norm(build, x, sizes) if sizes.norm == "pre" else x


def output_head(build: Builder, x: str, vocabulary: Axis, sizes: Sizes, *, tied: bool) -> str:
    """A logit for every word, then shares that sum to 1."""
    build = build.within("output")
    bias = (build.weight("logits.bias", vocabulary),) if sizes.bias and not tied else ()
    if tied:
        logits = build("logits", Unembed(), x, "embedding.tokens.weight")  # n × v
    else:
        logits = build("logits", Linear("x W"), x, build.weight("logits.weight", sizes.model, vocabulary), *bias)
    return build("probabilities", Softmax(), logits)


def _matrix(build: Builder, name: str, sizes: Sizes, out: Axis, inner: Axis | None = None) -> tuple[str, ...]:
    """The weight `name.weight` (in × out) and, where the model has biases, `name.bias`."""
    weight = build.weight(f"{name}.weight", inner or sizes.model, out)
    return (weight, build.weight(f"{name}.bias", out)) if sizes.bias else (weight,)
