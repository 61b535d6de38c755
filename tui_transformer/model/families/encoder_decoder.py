"""What the families with an encoder and a decoder have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.program import Builder
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.embedding import Embedding, embed
from tui_transformer.model.families.base import Lengths
from tui_transformer.model.layers import (
    Bias,
    Layout,
    Sequence,
    decoder_layer,
    encoder_layer,
    kept_sequence,
    norm,
    sequence,
)


@dataclass(frozen=True)
class Stack:
    """The encoder or the decoder: how many layers of which layout, what enters them, and a bias of their scores."""

    layers: int
    layout: Layout
    embedding: Embedding
    bias: Bias | None = None


def encoder_decoder(build: Builder, vocabulary: Axis, encoder: Stack, decoder: Stack, lengths: Lengths) -> str:
    """Both stacks of figure 1 (Vaswani et al. 2017), a final norm on each that is pre-norm; what leaves the decoder."""
    source, memory = _memory(build, vocabulary, encoder, lengths)
    inner = build.within("decoder")
    tokens = sequence(inner, "decoder tokens", lengths.decoder, lengths.past)
    x = embed(inner, tokens, vocabulary, decoder.layout, decoder.embedding)
    for i in range(decoder.layers):
        x = decoder_layer(inner.within(str(i)), x, memory, tokens, source, decoder.layout, decoder.bias)
    return _final_norm(inner, x, decoder.layout)


def _memory(build: Builder, vocabulary: Axis, encoder: Stack, lengths: Lengths) -> tuple[Sequence, str | None]:
    """The source and the encoder's output; no output where keys and values of it were kept."""
    if lengths.past:
        return kept_sequence(build, "tokens", lengths.tokens), None
    source = sequence(build, "tokens", lengths.tokens)
    x = embed(build, source, vocabulary, encoder.layout, encoder.embedding)
    inner = build.within("encoder")
    for i in range(encoder.layers):
        x = encoder_layer(inner.within(str(i)), x, source, encoder.layout, Mask(), encoder.bias)
    return source, _final_norm(inner, x, encoder.layout)


def _final_norm(build: Builder, x: str, layout: Layout) -> str:
    """The norm after the last layer of a pre-norm stack."""
    return norm(build, x, layout) if layout.place == "pre" else x


def check_ids(config: Any, *keys: str) -> None:
    """Raise UsageError for a token ID outside the vocabulary."""
    for key in keys:
        if (getattr(config, key) or 0) >= config.vocab_size:
            raise UsageError(f"{key} {shown(getattr(config, key))} is outside the vocabulary of {config.vocab_size}")


def repeated(names: frozenset[str], *candidates: str) -> dict[str, str]:
    """These of a file, but for the first, and the first: equal where all are the same weight."""
    found = [name for name in candidates if name in names]
    return dict.fromkeys(found[1:], found[0]) if found else {}


def check_one_table(names: frozenset[str], *candidates: str) -> None:
    """Raise UsageError where several of these are left in a file, because they differ."""
    for other, table in repeated(names, *candidates).items():
        raise UsageError(f"tensors {other} and {table} differ: only one embedding for both sides is supported")


def first_of(names: frozenset[str], *candidates: str) -> str:
    """The first of these that a file has; the first of all where it has none, for the message that it is missing."""
    return next((name for name in candidates if name in names), candidates[0])
