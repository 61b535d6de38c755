"""Layers one after another: the encoder and the decoder (Vaswani et al. 2017, figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Add, Linear, Parameter
from tui_transformer.engine.program import Builder
from tui_transformer.model.description import DistanceTable, Experts, FeedForward, Layer, Stack
from tui_transformer.model.experts import experts
from tui_transformer.model.layers import attention, attention_to_kept, feed_forward, matrix, norm, said_by, sublayer
from tui_transformer.model.sequence import Sequence

FEED_FORWARDS: Mapping[type, Callable[[Builder, str, Any], str]] = {FeedForward: feed_forward, Experts: experts}
"""Builders of the second sublayer, by the class that describes it."""


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
    return _projection(build, x, stack.projected) if stack.projected else x


def _projection(build: Builder, x: str, width: int) -> str:
    """The output of the stack, as wide as the embedding table (Zhang et al. 2022, as published)."""
    return build("projected", Linear("x W"), x, *matrix(build, "projected", x, Axis("embedding", width), frozenset()))


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
    return FEED_FORWARDS[type(layer.feed_forward)](build, x, layer.feed_forward)
