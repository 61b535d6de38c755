"""The whole model, from its description to the steps: tokens → embedding → stacks of layers → head."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import (
    Add,
    Concat,
    ExpertWeights,
    Linear,
    OfExpert,
    Op,
    Parameter,
    Pool,
    Scale,
    Sigmoid,
    SoftCap,
    Softmax,
    Unembed,
    UnitLength,
    WeightedExperts,
)
from tui_transformer.engine.program import LABEL, Builder, Program
from tui_transformer.model.description import (
    Dense,
    DistanceTable,
    Experts,
    FeedForward,
    Head,
    LabelHead,
    Layer,
    SentenceHead,
    Stack,
    Transform,
    Transformer,
)
from tui_transformer.model.layers import (
    ACTIVATIONS,
    attention,
    attention_to_kept,
    embed,
    feed_forward,
    matrix,
    norm,
    said_by,
    sublayer,
)
from tui_transformer.model.sequence import Lengths, Sequence, kept_sequence, sequence

SOURCE_VOCABULARY = "source vocabulary"
"""The axis of the encoder's words, where the decoder has others."""


def transformer(what: Transformer, lengths: Lengths) -> Program:
    """The program of a model for sentences of these lengths (Vaswani et al. 2017, figure 1)."""
    build, vocabulary = Builder(), Axis("vocabulary", what.target_vocab_size or what.vocab_size)
    x, tokens, source = _states(build, what, vocabulary, lengths)
    if isinstance(what.head, LabelHead):
        label_head(build, x, source, what.head)
    elif isinstance(what.head, SentenceHead):
        sentence_head(build, x, tokens, what.head)
    elif what.head is not None:
        word_head(build, x, vocabulary, what.head)
    return build.program()


def _states(build: Builder, what: Transformer, vocabulary: Axis, lengths: Lengths) -> tuple[str, Sequence, Sequence]:
    """The output of the last stack, the tokens that it is of, and those of the sentence."""
    model = Axis("dimension", what.d_model)
    if what.encoder is None or what.decoder is None:
        name, only = ("decoder", what.decoder) if what.encoder is None else ("encoder", what.encoder)
        assert only is not None  # noqa: S101 - a description without a stack describes nothing
        tokens = sequence(build, "tokens", lengths.tokens, lengths.past)
        x = embed(build, tokens, vocabulary, model, only.embedding)
        return run_stack(build.within(name), x, only, tokens), tokens, tokens
    words = Axis(SOURCE_VOCABULARY, what.vocab_size) if what.target_vocab_size else vocabulary
    source, memory = _memory(build, what.encoder, words, model, lengths)
    inner = build.within("decoder")
    tokens = sequence(inner, "decoder tokens", lengths.decoder, lengths.past)
    x = embed(inner, tokens, vocabulary, model, what.decoder.embedding)
    return run_stack(inner, x, what.decoder, tokens, memory, source), tokens, source


def _memory(
    build: Builder, encoder: Stack, vocabulary: Axis, model: Axis, lengths: Lengths
) -> tuple[Sequence, str | None]:
    """The source and the encoder's output; no output where keys and values of it were kept."""
    if lengths.past:
        return kept_sequence(build, "tokens", lengths.tokens), None
    source = sequence(build, "tokens", lengths.tokens)
    x = embed(build, source, vocabulary, model, encoder.embedding)
    return source, run_stack(build.within("encoder"), x, encoder, source)


# Layers one after another: the encoder and the decoder (Vaswani et al. 2017, figure 1)


def run_stack(
    build: Builder, x: str, stack: Stack, tokens: Sequence, memory: str | None = None, source: Sequence | None = None
) -> str:
    """Every layer, and the norm after the last, where there is one.

    Args:
        build: Inside the stack's scope.
        x: What enters layer 0.
        stack: What there is.
        tokens: The stack's own sequence.
        memory: The encoder's output, for a decoder; None where keys and values of it were kept.
        source: The encoder's sequence, for a decoder.
    """
    if stack.distances is not None:
        _distances(build, stack.distances, build.known[x][-1])
    for i, each in enumerate(stack.layers):
        inner = build.within(str(i), each.source)
        x = _parallel(inner, x, each, tokens) if each.parallel else _layer(inner, x, each, tokens, memory, source)
        inner.alias("output", x)
    if stack.norm is not None:
        x = norm(build, x, stack.norm, role="norm")
    if stack.projected:  # as wide as the embedding table (Zhang et al. 2022, as published)
        table = Axis("embedding", stack.projected)
        x = build("projected", Linear("x W"), x, *matrix(build, "projected", x, table, frozenset()))
    return x


def _distances(build: Builder, table: DistanceTable, model: Axis) -> None:
    """The steps `distances` and, where they are normalised, `distances_norm`."""
    vectors = build("distances", Parameter(), build.weight("distances.weight", Axis("distance", table.rows), model))
    if table.norm is not None:
        norm(build, vectors, table.norm, "distances_norm")


def _layer(build: Builder, x: str, layer: Layer, tokens: Sequence, memory: str | None, source: Sequence | None) -> str:
    """Self-attention, in a decoder beside an encoder cross-attention, and feed-forward, each with add & norm."""

    def attend(inner: Builder, states: str) -> str:
        return attention(inner, states, states, tokens, tokens, layer.attention)

    def look_at_source(inner: Builder, states: str) -> str:
        assert layer.cross is not None  # noqa: S101 - asked for below only
        assert source is not None  # noqa: S101 - a cross-attention has one
        if memory is None:
            return attention_to_kept(inner, states, tokens, source, layer.cross)
        return attention(inner, states, memory, tokens, source, layer.cross)

    x = sublayer(build.within("self_attention"), x, layer, layer.attention_place or layer.place, attend)
    if layer.cross is not None:
        x = sublayer(build.within("cross_attention"), x, layer, layer.place, look_at_source)
    feed = build.within("feed_forward")
    return sublayer(feed, x, layer, layer.place, lambda inner, states: _feed(inner, states, layer))


def _parallel(build: Builder, x: str, layer: Layer, tokens: Sequence) -> str:
    """Add x, attention(norm₁(x)) and feed-forward(norm₂(x)): both read what enters (Black et al. 2022, §2.1)."""
    attend, feed = build.within("self_attention"), build.within("feed_forward")
    states = norm(attend, x, layer.norm, role="norm")
    attended = attention(attend, states, states, tokens, tokens, layer.attention)
    if layer.parallel == "two norms":
        states = norm(feed, x, layer.norm, role="norm")
    fed = _feed(feed, states, layer)
    said = (said_by(attend, attended, layer, layer.place), said_by(feed, fed, layer, layer.place))
    return feed("residual", Add("x + attention(x) + feed-forward(x)"), x, *said, role="residual")


def _feed(build: Builder, x: str, layer: Layer) -> str:
    how = layer.feed_forward
    return experts(build, x, how) if isinstance(how, Experts) else feed_forward(build, x, how)


# A feed-forward layer of experts: a router chooses a few of them for every token (Shazeer et al. 2017)


def experts(build: Builder, x: str, how: Experts) -> str:
    """Σ share · expert(x) over the chosen experts, and the shared expert beside them, where there is one."""
    router = _router(build, x, Axis("expert", how.count), bias=how.router_bias)  # n × d → n × experts
    shares = build("expert_weights", ExpertWeights(how.chosen, how.among_chosen), router)
    each = build.within("experts")
    said = [_expert(each.within(str(number)), x, shares, number, how) for number in range(how.count)]
    together = WeightedExperts(how.chosen)
    if how.shared is None:
        return build("output", together, shares, *said)
    chosen, shared = each("output", together, shares, *said), _shared(build.within("shared"), x, how.shared)
    return build("output", Add("experts + shared"), chosen, shared)


def _router(build: Builder, x: str, axis: Axis, *, bias: bool = False) -> str:
    biased = frozenset({"router"} if bias else ())
    return build("router", Linear("x W_r"), x, *matrix(build, "router", x, axis, biased))


def _expert(build: Builder, x: str, shares: str, number: int, how: Experts) -> str:
    """One expert, computed for the tokens that chose it."""

    def step(name: str, op: Op, *inputs: str) -> str:
        rows = sum(each not in build.weights for each in inputs)
        return build(name, OfExpert(op, number, how.chosen, rows), *inputs, shares)

    return feed_forward(build, x, how.each, step)


def _shared(build: Builder, x: str, how: FeedForward) -> str:
    """The expert of all tokens, times a share that it gets for itself alone (Qwen Team 2024)."""
    said = feed_forward(build, x, how)
    share = build("expert_weights", Sigmoid(), _router(build, x, Axis("expert", 1)))
    return build("weighted", WeightedExperts(1), share, said)


# The head: a logit for every word or for every label and their shares, or one vector for the sentence


def word_head(build: Builder, x: str, vocabulary: Axis, how: Head) -> str:
    """Logits with the embedding table again or a matrix of their own, capped where the model does so; their shares."""
    build = build.within("output")
    if how.transform is not None:
        x = _transform(build.within("transform"), x, how.transform)
    biases = (build.weight("logits.bias", vocabulary),) if how.bias else ()
    if how.tied is not None:
        logits = build("logits", Unembed(how.scale), x, how.tied, *biases)  # n × d → n × v
    else:
        if how.scale != 1.0:
            x = build("scaled", Scale(how.scale, f"· {how.scale:g}", "x"), x)
        weight = build.weight("logits.weight", build.known[x][-1], vocabulary)
        logits = build("logits", Linear("x W"), x, weight, *biases)
    if how.cap is not None:
        logits = build("capped", SoftCap(how.cap), logits)
    return build("probabilities", Softmax(), logits)


POOLED = "pooled"
POOL_NAMES: Mapping[str, str] = {
    "first": "first",
    "max": "max",
    "mean": "mean",
    "mean over √n": "mean_sqrt",
    "weighted mean": "weighted_mean",
    "last": "last",
}
"""The steps of several vectors that stand side by side, by how they are pooled."""

SHARES: Mapping[str, type[Op]] = {"softmax": Softmax, "sigmoid": Sigmoid}


def label_head(build: Builder, x: str, tokens: Sequence, how: LabelHead) -> str:
    """Logits of labels, of the sentence or of every token (Devlin et al. 2018, §4), and their shares."""
    build = build.within("output")
    if how.pool:
        seen = tokens.other_input(build, "ended") if how.until_end else tokens.visible
        x = build("pooled", Pool(how.pool), x, seen)  # n × d → d
    if how.transform is not None:
        x = _transform(build.within("transform"), x, how.transform)
    labels = Axis(LABEL, len(how.labels), words=how.labels)
    biased = frozenset({"logits"} if how.bias else ())
    logits = build("logits", Linear("x W"), x, *matrix(build, "logits", x, labels, biased))
    return build("probabilities", SHARES[how.shares](), logits) if how.shares else logits


def sentence_head(build: Builder, x: str, tokens: Sequence, how: SentenceHead) -> str:
    """One vector for the sentence, as the modules behind the layers make it (Reimers & Gurevych 2019, §3)."""
    x = _pooled(build, x, tokens, how.pools)
    scope, made = build.within(POOLED), set[str]()
    for place, module in enumerate(how.then):
        name = "normalized" if module is None else "dense"
        inner = scope.within(str(place)) if name in made else scope
        made.add(name)
        x = inner(name, UnitLength(), x) if module is None else _dense(inner, x, module)
    return x


def _pooled(build: Builder, x: str, tokens: Sequence, pools: tuple[str, ...]) -> str:
    if len(pools) == 1:
        return build(POOLED, Pool(pools[0]), x, tokens.visible)  # n × d → d
    parts = [build(f"{POOLED}.{POOL_NAMES[how]}", Pool(how), x, tokens.visible) for how in pools]
    return build(POOLED, Concat(), *parts)  # d each → k · d


def _dense(build: Builder, x: str, how: Dense) -> str:
    out = Axis("dimension", how.width)
    x = build("dense", Linear("x W"), x, *matrix(build, "dense", x, out, frozenset({"dense"} if how.bias else ())))
    return build("activation", ACTIVATIONS[how.activation](), x) if how.activation else x


def _transform(build: Builder, x: str, how: Transform) -> str:
    """A matrix, an activation and a norm (Devlin et al. 2018, as published)."""
    out = Axis("dimension", how.width) if how.width else build.known[x][-1]
    x = build("hidden", Linear("x W"), x, *matrix(build, "hidden", x, out, frozenset({"hidden"} if how.bias else ())))
    if how.activation:
        x = build("activation", ACTIVATIONS[how.activation](), x)
    return x if how.norm is None else norm(build, x, how.norm)
