"""The transformer of the 2017 paper, in the project's own checkpoints."""

from __future__ import annotations

import math
from dataclasses import replace

from tui_transformer.engine.program import Program
from tui_transformer.model.config import Config
from tui_transformer.model.description import (
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    NO_MATRICES,
    Attention,
    Embedding,
    FeedForward,
    Head,
    Layer,
    Norm,
    Stack,
    Transformer,
)
from tui_transformer.model.families.base import Family
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.transformer import transformer


def describe(config: Config) -> Transformer:
    """Tokens → embedding → N layers → logits (Vaswani et al. 2017, figure 1)."""
    scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
    embedding = Embedding(scale=scale, positions=config.positions, max_length=config.max_length)
    layer = _layer(config)
    last = layer.norm if config.norm == "pre" else None
    first = Stack(embedding, (layer,) * config.layers, last)
    tied = embedding.table if config.tie_output else None
    head = Head(tied, bias=config.bias and tied is None)
    if not config.has_decoder:
        encoder, decoder = (first, None) if config.stack == "encoder" else (None, first)
        return Transformer(config.vocab_size, config.d_model, encoder, decoder, head)
    causal, free = (replace(layer.attention, causal=each) for each in (True, False))
    second = Stack(embedding, (replace(layer, attention=causal, cross=free),) * config.decoder_layers, last)
    return Transformer(config.vocab_size, config.d_model, first, second, head)


def _layer(config: Config) -> Layer:
    biased = ATTENTION_MATRICES if config.bias else NO_MATRICES
    attention = Attention(config.heads, config.d_model // config.heads, bias=biased, causal=config.masks_future)
    feed_forward = FeedForward(
        config.d_ff, config.activation, bias=FEED_FORWARD_MATRICES if config.bias else NO_MATRICES
    )
    return Layer(attention, feed_forward, Norm(config.norm_epsilon), config.norm)


def program(config: Config, lengths: Lengths) -> Program:
    """The program of what a configuration describes."""
    return transformer(describe(config), lengths)


VANILLA = Family("vanilla", Config.from_json, program)
