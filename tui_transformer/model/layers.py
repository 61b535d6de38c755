"""The layers, written like the paper: one line a step, a shape where the shape changes.

n tokens (queries), m keys, d model width, h heads, g key/value heads, d_k width of a head, f feed-forward width,
v vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tui_transformer.engine import ops
from tui_transformer.engine.axis import Axis
from tui_transformer.engine.program import Builder, Role
from tui_transformer.model.description import Attention, Embedding, FeedForward, Layer, Norm
from tui_transformer.model.sequence import Sequence
from tui_transformer.records import dataclass

ACTIVATIONS: dict[str, Callable[[], ops.Op]] = {
    "relu": ops.Relu,
    "relu2": ops.ReluSquared,
    "gelu": ops.Gelu,
    "gelu_tanh": ops.GeluTanh,
    "quick_gelu": ops.QuickGelu,
    "silu": ops.Silu,
    "tanh": ops.Tanh,
}
Step = Callable[..., str]
"""Adds a step, as a `Builder` does."""

LINEAR = ops.Linear("x W")
NOT_DIVIDED = ops.Scale(1.0, "not divided")
NORM_BEFORE, NORM_OF_OUTPUT = frozenset({"pre", "both"}), frozenset({"both", "output"})


# Attention


def attention(build: Builder, x: str, memory: str | None, queries: Sequence, keys: Sequence, how: Attention) -> str:
    """softmax(Q Kᵀ ÷ √d_k) V in every head, heads side by side, times W_O (Vaswani et al. 2017, §3.2).

    K and V are made of `memory`; None where all of them were kept, as those of an encoder's output are.
    """
    kv_heads = how.kv_heads or how.heads
    query = _heads(build, "query", "Q", x, how.heads, how)  # n × d → h × n × d_k
    if memory is None:
        (every,) = build.known[keys.visible]
        key, value = (_kept(build, name, every, kv_heads, how.width) for name in ("key", "value"))
    else:
        key = _heads(build, "key", "K", memory, kv_heads, how)  # m × d → g × m × d_k
        value = _heads(build, "value", "V", memory, kv_heads, how)
    if how.head_norm is not None:
        query = head_norm(build, query, how.head_norm, how.head_norms, "query_norm")
        key = head_norm(build, key, how.head_norm, how.head_norms, "key_norm")
    if how.rotary is not None:
        turn = ops.Rotate(how.rotary.of(keys.counted or build.known[keys.visible][0].size), how.rotary.factor)
        query = build("query_rotated", turn, query, queries.places)
        key = build("key_rotated", turn, key, keys.places)
    if keys.kept is not None:
        kept = (_kept(build, name, keys.kept, kv_heads, how.width) for name in ("key", "value"))
        key, value = (
            build(f"{name}_cached", ops.Extend(), before, new)
            for name, before, new in zip(("key", "value"), kept, (key, value), strict=True)
        )
    context = dot_product(build, query, key, value, queries, keys, how)
    concat = build("concat", ops.MergeHeads(), context)  # h × n × d_k → n × h·d_k
    return product(build, "output", concat, build.known[x][-1], ops.Linear("concat W_O"), biased=how.output_bias)


def dot_product(
    build: Builder, query: str, key: str, value: str, queries: Sequence, keys: Sequence, how: Attention
) -> str:
    """softmax(Q Kᵀ ÷ √d_k) V (Vaswani et al. 2017, equation 1)."""
    share = build.known[query][0].size // build.known[key][0].size
    scores = build("scores", ops.Scores(share), query, key)  # h × n × m
    states = build("scaled", how.scale or divided(how.width), scores)
    if how.cap is not None:
        states = build("capped", ops.SoftCap(how.cap), states)
    if how.score_bias is not None:
        states = how.score_bias.add(build, states, query, key, queries, keys)
    mask = ops.Mask(causal=how.causal, window=how.window)
    masked = build("masked", mask, states, queries.places, keys.keys, keys.visible)
    if how.sink:
        weights = build("weights", ops.SoftmaxWithSink(), masked, build.weight("sinks.weight", build.known[masked][0]))
    else:
        weights = build("weights", ops.Softmax(), masked)
    return build("context", ops.Context(share), weights, value)  # h × n × d_k


def divided(width: float, divisor: float = 1.0) -> ops.Scale:
    """÷ √d_k (Vaswani et al. 2017, §3.2.1), or ÷ √ of another number, and ÷ what a layer divides by besides."""
    parts = [f"√{width:g}", *([f"{divisor:g}"] if divisor != 1.0 else [])]
    return ops.Scale(1.0 / math.sqrt(width) / divisor, " ".join(f"÷ {part}" for part in parts))


def _heads(build: Builder, name: str, letter: str, x: str, heads: int, how: Attention) -> str:
    out = Axis("heads · width", heads * how.width)
    return product(build, name, x, out, ops.Project(how.width, letter), biased=how.bias)


def _kept(build: Builder, name: str, past: Axis, heads: int, width: int) -> str:
    """The kept rows of keys or values: they come from outside."""
    return build.given(build.full(f"{name}_kept"), Axis("head", heads), past, Axis("head width", width))


# Feed-forward


def feed_forward(build: Builder, x: str, how: FeedForward, step: Step | None = None) -> str:
    """f(x W₁ + b₁) W₂ + b₂ at every token (Vaswani et al. 2017, §3.3); gated: (f(x W_g) · x W₁) W₂ (Shazeer 2020).

    `step` adds the steps, where they are not for all tokens.
    """
    step = step or build
    model, inner = build.known[x][-1], Axis("feed-forward", how.width)

    def linear(name: str, formula: str, states: str, out: Axis) -> str:
        return product(build, name, states, out, ops.Linear(formula), biased=how.bias, step=step)

    hidden = linear("hidden", "x W₁", x, inner)
    activation: ops.Op = ACTIVATIONS[how.activation]()
    gating: ops.Op = ops.Gate()
    if how.limit is not None:
        activation, gating = ops.ClampedSwish(how.alpha, how.limit), ops.ClampedGate(how.limit)
    if how.gated:
        active = step("activation", activation, linear("gate", "x W_g", x, inner))
        active = step("gated", gating, active, hidden)
    else:
        active = step("activation", activation, hidden)
    return linear("output", "a W₂", active, model)  # n × f → n × d


def product(
    build: Builder, name: str, x: str, out: Axis, op: ops.Op = LINEAR, *, biased: bool = False, step: Step | None = None
) -> str:
    """A product of x with the weight `name.weight` (in × out), plus `name.bias` where it has one."""
    weights = [build.weight(f"{name}.weight", build.known[x][-1], out)]
    if biased:
        weights.append(build.weight(f"{name}.bias", out))
    return (step or build)(name, op, x, *weights)


# Add & norm


def norm(build: Builder, x: str, how: Norm, name: str = "norm", role: Role = "") -> str:
    """Layer norm with γ and, where it has one, β; or RMS norm with γ alone."""
    axis = build.known[x][-1]
    weight = build.weight(f"{name}.weight", axis)
    if how.kind == "rms":
        return build(name, ops.RmsNorm(how.epsilon), x, weight, role=role)
    shift = (build.weight(f"{name}.bias", axis),) if how.shift else ()
    return build(name, ops.LayerNorm(how.epsilon), x, weight, *shift, role=role)


def head_norm(build: Builder, x: str, how: Norm, kind: str, name: str) -> str:
    """Query or key heads, normalised: "alike", each by weights of its "own", or those of a token "together"."""
    heads, _, width = build.known[x]
    if kind == "alike":
        return norm(build, x, how, name)
    if kind == "own":
        weights = (build.weight(f"{name}.{head}.weight", width) for head in range(heads.size))
        return build(name, ops.LayerNormByHead(how.epsilon), x, *weights)
    weight = build.weight(f"{name}.weight", Axis("heads · width", heads.size * width.size))
    return build(name, ops.RmsNormOfHeads(how.epsilon), x, weight)


def entering(build: Builder, x: str, layer: Layer, place: str) -> str:
    """What a sublayer f reads of the residual stream: x, or norm(x) where the norm is before it."""
    return norm(build, x, layer.norm, role="norm") if place in NORM_BEFORE else x


def leaving(build: Builder, x: str, output: str, layer: Layer, place: str) -> str:
    """Add & norm: x + f(x), or as the layer's place says."""
    x = build("residual", ops.Add(), x, said_by(build, output, layer, place), role="residual")
    return norm(build, x, layer.norm, role="norm") if place == "post" else x


def said_by(build: Builder, output: str, layer: Layer, place: str) -> str:
    """The output of a sublayer as it is added to the residual stream, normalised and scaled where the layer does so."""
    if place in NORM_OF_OUTPUT:
        output = norm(build, output, layer.norm, "output_norm")
    if layer.residual_scale != 1.0:
        output = build("output_scaled", ops.Scale(layer.residual_scale, f"· {layer.residual_scale:g}", "x"), output)
    return output


@dataclass(frozen=True)
class RelativePositions:
    """A number for the head and the distance of query and key, from a table (Raffel et al. 2020, §2.1).

    Attributes:
        table: The weight, by its whole name: the layers of a stack may share one.
        limit: Keys from so many tokens away share the last bucket.
        bidirectional: Half of the buckets is for keys after the query.
        in_order: Distances count tokens, whatever places they have in a table of positions.
    """

    table: str
    buckets: int
    limit: int
    bidirectional: bool
    in_order: bool = False

    def add(self, build: Builder, scores: str, query: str, key: str, queries: Sequence, keys: Sequence) -> str:
        """The step `biased`."""
        del key
        axes = Axis("bucket", self.buckets), build.known[query][0]
        table = build.shared_weight(self.table, *axes)
        places = (queries.other_input(build, "order"),) * 2 if self.in_order else (queries.places, keys.keys)
        return build("biased", ops.RelativeBias(self.limit, self.bidirectional), scores, table, *places)


@dataclass(frozen=True)
class Distances:
    """The distance of query and key times a slope of the head, taken off (Press et al. 2022, §3)."""

    slopes: tuple[float, ...]

    def add(self, build: Builder, scores: str, query: str, key: str, queries: Sequence, keys: Sequence) -> str:
        """The step `biased`."""
        del query, key
        return build("biased", ops.DistanceBias(self.slopes), scores, queries.places, keys.keys)


@dataclass(frozen=True)
class Disentangled:
    """Scores of queries and of keys with the distance between them (He et al. 2021, "DeBERTa", §3.1).

    Attributes:
        vectors: The step that holds a vector for every distance.
        sides: Which of "query" and "key" are compared with distances.
        factor: What those scores are multiplied by.
        shared: Distances are projected like tokens, by the same matrices.
        span: Rows of distances on either side.
        buckets: Rows whose distances grow with the logarithm, on both sides; 0 for one a distance.
        farthest: The distance that the last of them is for.
    """

    vectors: str
    sides: tuple[str, ...]
    factor: float
    shared: bool
    span: int
    buckets: int
    farthest: int

    def add(self, build: Builder, scores: str, query: str, key: str, queries: Sequence, keys: Sequence) -> str:
        """The step `biased`, and the projections of distances and their scores before it."""
        compared = []
        for side in self.sides:  # queries with the keys of distances, keys with their queries
            tokens, other, letter = {"query": (query, "key", "K_r"), "key": (key, "query", "Q_r")}[side]
            head, _, width = build.known[tokens]
            weights, axis = other if self.shared else f"distance_{other}", Axis("heads · width", head.size * width.size)
            matrix = build.weight(f"{weights}.weight", build.known[self.vectors][-1], axis)
            bias = build.weight(f"{weights}.bias", axis)
            distances = build(f"distance_{other}", ops.Project(width.size, letter), self.vectors, matrix, bias)
            compared.append(build(f"{side}_distance_scores", ops.DistanceScores(side=side), tokens, distances))
        op = ops.Disentangle(self.sides, self.factor, self.span, self.buckets, self.farthest)
        return build("biased", op, scores, *compared, queries.places, keys.keys)


def alibi_slopes(heads: int, divisor: float = 1.0) -> tuple[float, ...]:
    """Slopes of the heads as published: 2^(−8/h), 2^(−16/h) … for a power of 2; else those and every second between.

    Press et al. 2022, §3, and the code that goes with it. ÷ `divisor` where biased scores are divided after it.
    """
    whole = 2 ** int(math.log2(heads))
    first = tuple(2.0 ** (-8.0 * (i + 1) / whole) for i in range(whole))
    between = tuple(2.0 ** (-8.0 * (2 * i + 1) / (2 * whole)) for i in range(heads - whole))
    return tuple(slope / divisor for slope in first + between)


def embed(build: Builder, tokens: Sequence, vocabulary: Axis, model: Axis, what: Embedding) -> str:
    """Rows of the table plus positions and segments, normalised where the model does so (Vaswani et al. 2017, §3.4)."""
    width = Axis("embedding", what.width) if what.width else model
    table = build.shared_weight(what.table, vocabulary, width)
    segments = tokens.other_input(build, "segments") if what.segments else ""
    unpadded = tokens.other_input(build, "unpadded") if what.positions == "fairseq" else ""
    build = build.within("embedding")
    parts = [build("tokens", ops.Embed(what.scale), tokens.tokens, table)]  # n → n × d
    if what.projected_first and width is not model:
        parts, width = [product(build, "projected", parts[0], model)], model
    if what.positions == "learned":
        rows = build.weight("positions.weight", Axis("position", what.max_length), width)
        parts.append(build("positions", ops.Embed(ids="pos"), tokens.places, rows))
    elif what.positions != "none":
        fairseq = what.positions == "fairseq"
        sines = ops.Sinusoid(width.size, what.positions != "sinusoidal", fairseq, what.silent)
        parts.append(build("positions", sines, unpadded if fairseq else tokens.places))
    if what.segments:
        rows = build.weight("segments.weight", Axis("segment", what.segments), width)
        parts.append(build("segments", ops.Embed(ids="segment"), segments, rows))
    if width is not model:  # narrow (Lan et al. 2020, "ALBERT", §3.1)
        x = product(build, "projected", _normed(build, parts, what.norm), model, biased=True)
    elif what.norm is None and len(parts) > 1:
        return build("output", ops.Add("token + position"), *parts)
    else:
        x = _normed(build, parts, what.norm)
    build.alias("output", x)
    return x


def _normed(build: Builder, parts: list[str], how: Norm | None) -> str:
    """The sum of the parts, normalised where the model does so."""
    if how is None:
        return parts[0] if len(parts) == 1 else build("sum", ops.Add("token + position"), *parts)
    if len(parts) == 1 or how.kind == "rms" or not how.shift:
        return norm(build, _normed(build, parts, None), how)
    axis = build.known[parts[0]][-1]
    weight, bias = build.weight("norm.weight", axis), build.weight("norm.bias", axis)
    return build("norm", ops.NormOfSum(how.epsilon, len(parts)), *parts, weight, bias)
