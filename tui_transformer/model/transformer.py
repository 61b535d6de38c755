"""The whole model, from its description to the steps: tokens → embedding → stacks of layers → head."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.engine import ops
from tui_transformer.engine.axis import Axis
from tui_transformer.engine.program import LABEL, Builder, Program
from tui_transformer.model.description import (
    Experts,
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
    embed,
    entering,
    feed_forward,
    leaving,
    norm,
    product,
    said_by,
)
from tui_transformer.model.sequence import Lengths, Sequence, sequence


def transformer(what: Transformer, lengths: Lengths) -> Program:
    """The program of a model for sentences of these lengths (Vaswani et al. 2017, figure 1)."""
    build, vocabulary = Builder(), Axis("vocabulary", what.target_vocab_size or what.vocab_size)
    model, memory = Axis("dimension", what.d_model), None
    if what.encoder is None or what.decoder is None:
        name, stack = ("decoder", what.decoder) if what.encoder is None else ("encoder", what.encoder)
        assert stack is not None  # noqa: S101 - a description without a stack describes nothing
        source = tokens = sequence(build, "tokens", lengths.tokens, lengths.past, lengths.counted)
        x = run_stack(build.within(name), embed(build, tokens, vocabulary, model, stack.embedding), stack, tokens)
    else:
        if lengths.past:  # keys and values of the encoder's output were kept
            source = sequence(build, "tokens", lengths.tokens, computed=False)
        else:
            words = Axis("source vocabulary", what.vocab_size) if what.target_vocab_size else vocabulary
            source = sequence(build, "tokens", lengths.tokens)
            x = embed(build, source, words, model, what.encoder.embedding)
            memory = run_stack(build.within("encoder"), x, what.encoder, source)
        inner = build.within("decoder")
        tokens = sequence(inner, "decoder tokens", lengths.decoder, lengths.past)
        x = embed(inner, tokens, vocabulary, model, what.decoder.embedding)
        x = run_stack(inner, x, what.decoder, tokens, memory, source)
    if isinstance(what.head, LabelHead):
        label_head(build, x, source, what.head)
    elif isinstance(what.head, SentenceHead):
        sentence_head(build, x, tokens, what.head)
    elif what.head is not None:
        word_head(build, x, vocabulary, what.head)
    return build.program()


# Layers one after another: the encoder and the decoder (Vaswani et al. 2017, figure 1)


def run_stack(
    build: Builder, x: str, stack: Stack, tokens: Sequence, memory: str | None = None, source: Sequence | None = None
) -> str:
    """Every layer, and the norm after the last, where there is one; x enters layer 0.

    A decoder beside an encoder has that one's output as `memory` (None where keys and values of it were kept), and its
    sequence as `source`.
    """
    if stack.distances:
        table = Axis("distance", stack.distances)
        vectors = build("distances", ops.Parameter(), build.weight("distances.weight", table, build.known[x][-1]))
        if stack.distances_norm is not None:
            norm(build, vectors, stack.distances_norm, "distances_norm")
    for i, each in enumerate(stack.layers):
        inner = build.within(str(i), each.source)
        x = _parallel(inner, x, each, tokens) if each.parallel else _layer(inner, x, each, tokens, memory, source)
        inner.alias("output", x)
    if stack.norm is not None:
        x = norm(build, x, stack.norm, role="norm")
    if stack.projected:  # as wide as the embedding table (Zhang et al. 2022, as published)
        x = product(build, "projected", x, Axis("embedding", stack.projected))
    return x


def _layer(build: Builder, x: str, layer: Layer, tokens: Sequence, memory: str | None, source: Sequence | None) -> str:
    """Self-attention, in a decoder beside an encoder cross-attention, and feed-forward, each with add & norm."""
    inner, place = build.within("self_attention"), layer.attention_place or layer.place
    states = entering(inner, x, layer, place)
    x = leaving(inner, x, attention(inner, states, states, tokens, tokens, layer.attention), layer, place)
    if layer.cross is not None and source is not None:
        inner = build.within("cross_attention")
        states = entering(inner, x, layer, layer.place)
        x = leaving(inner, x, attention(inner, states, memory, tokens, source, layer.cross), layer, layer.place)
    inner = build.within("feed_forward")
    return leaving(inner, x, _feed(inner, entering(inner, x, layer, layer.place), layer), layer, layer.place)


def _parallel(build: Builder, x: str, layer: Layer, tokens: Sequence) -> str:
    """Add x, attention(norm₁(x)) and feed-forward(norm₂(x)): both read what enters (Black et al. 2022, §2.1)."""
    attend, feed = build.within("self_attention"), build.within("feed_forward")
    states = norm(attend, x, layer.norm, role="norm")
    attended = attention(attend, states, states, tokens, tokens, layer.attention)
    if layer.parallel == "two norms":
        states = norm(feed, x, layer.norm, role="norm")
    fed = _feed(feed, states, layer)
    said = (said_by(attend, attended, layer, layer.place), said_by(feed, fed, layer, layer.place))
    return feed("residual", ops.Add("x + attention(x) + feed-forward(x)"), x, *said, role="residual")


def _feed(build: Builder, x: str, layer: Layer) -> str:
    how = layer.feed_forward
    return experts(build, x, how) if isinstance(how, Experts) else feed_forward(build, x, how)


# A feed-forward layer of experts: a router chooses a few of them for every token (Shazeer et al. 2017)


ROUTING = ops.Linear("x W_r")


def experts(build: Builder, x: str, how: Experts) -> str:
    """Σ share · expert(x) over the chosen experts, and the shared expert beside them, where there is one."""
    router = product(
        build, "router", x, Axis("expert", how.count), ROUTING, biased=how.router_bias
    )  # n × d → n × experts
    shares = build("expert_weights", ops.ExpertWeights(how.chosen, how.among_chosen), router)
    each = build.within("experts")
    said = [_expert(each.within(str(number)), x, shares, number, how) for number in range(how.count)]
    together = ops.WeightedExperts(how.chosen)
    if how.shared is None:
        return build("output", together, shares, *said)
    chosen, own = each("output", together, shares, *said), build.within("shared")
    shared = feed_forward(own, x, how.shared)  # times a share that it gets for itself alone (Qwen Team 2024)
    share = own("expert_weights", ops.Sigmoid(), product(own, "router", x, Axis("expert", 1), ROUTING))
    shared = own("weighted", ops.WeightedExperts(1), share, shared)
    return build("output", ops.Add("experts + shared"), chosen, shared)


def _expert(build: Builder, x: str, shares: str, number: int, how: Experts) -> str:
    """One expert, computed for the tokens that chose it."""

    def step(name: str, op: ops.Op, *inputs: str) -> str:
        rows = sum(each not in build.weights for each in inputs)
        return build(name, ops.OfExpert(op, number, how.chosen, rows), *inputs, shares)

    return feed_forward(build, x, how.each, step)


# The head: a logit for every word or for every label and their shares, or one vector for the sentence


def word_head(build: Builder, x: str, vocabulary: Axis, how: Head) -> str:
    """Logits with the embedding table again or a matrix of their own, capped where the model does so; their shares."""
    build = build.within("output")
    if how.transform is not None:
        x = _transform(build.within("transform"), x, how.transform)
    biases = (build.weight("logits.bias", vocabulary),) if how.bias else ()
    if how.tied is not None:
        logits = build("logits", ops.Unembed(how.scale), x, how.tied, *biases)  # n × d → n × v
    else:
        if how.scale != 1.0:
            x = build("scaled", ops.Scale(how.scale, f"· {how.scale:g}", "x"), x)
        weight = build.weight("logits.weight", build.known[x][-1], vocabulary)
        logits = build("logits", ops.Linear("x W"), x, weight, *biases)
    if how.cap is not None:
        logits = build("capped", ops.SoftCap(how.cap), logits)
    return build("probabilities", ops.Softmax(), logits)


POOLED = "pooled"
POOL_NAMES: Mapping[str, str] = {"mean over √n": "mean_sqrt", "weighted mean": "weighted_mean"}
"""The steps of several vectors that stand side by side, where they are not called as they are pooled."""

SHARES: Mapping[str, type[ops.Op]] = {"softmax": ops.Softmax, "sigmoid": ops.Sigmoid}


def label_head(build: Builder, x: str, tokens: Sequence, how: LabelHead) -> str:
    """Logits of labels, of the sentence or of every token (Devlin et al. 2018, §4), and their shares."""
    build = build.within("output")
    if how.pool:
        seen = tokens.other_input(build, "ended") if how.until_end else tokens.visible
        x = build("pooled", ops.Pool(how.pool), x, seen)  # n × d → d
    if how.transform is not None:
        x = _transform(build.within("transform"), x, how.transform)
    logits = product(build, "logits", x, Axis(LABEL, len(how.labels), words=how.labels), biased=how.bias)
    return build("probabilities", SHARES[how.shares](), logits) if how.shares else logits


def sentence_head(build: Builder, x: str, tokens: Sequence, how: SentenceHead) -> str:
    """One vector for the sentence, as the modules behind the layers make it (Reimers & Gurevych 2019, §3)."""
    several = len(how.pools) > 1
    names = {pool: f"{POOLED}.{POOL_NAMES.get(pool, pool)}" if several else POOLED for pool in how.pools}
    parts = [build(name, ops.Pool(pool), x, tokens.visible) for pool, name in names.items()]  # n × d → d
    x = build(POOLED, ops.Concat(), *parts) if several else parts[0]  # d each → k · d
    scope, made = build.within(POOLED), set[str]()
    for place, module in enumerate(how.then):
        name = "normalized" if module is None else "dense"
        inner = scope.within(str(place)) if name in made else scope
        made.add(name)
        x = inner(name, ops.UnitLength(), x) if module is None else _transform(inner, x, module, name)
    return x


def _transform(build: Builder, x: str, how: Transform, name: str = "hidden") -> str:
    """A matrix, an activation and a norm (Devlin et al. 2018, as published)."""
    out = Axis("dimension", how.width) if how.width else build.known[x][-1]
    x = product(build, name, x, out, biased=how.bias)
    if how.activation:
        x = build("activation", ACTIVATIONS[how.activation](), x)
    return x if how.norm is None else norm(build, x, how.norm)
