"""The transformer of the 2017 paper, in the project's own checkpoints."""

from __future__ import annotations

import math

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.program import Builder, Program
from tui_transformer.model.config import Config
from tui_transformer.model.embedding import Embedding, embed
from tui_transformer.model.families.base import Family, Lengths
from tui_transformer.model.layers import (
    ALL_MATRICES,
    Layout,
    Norm,
    Sequence,
    decoder_layer,
    encoder_layer,
    kept_sequence,
    logits,
    norm,
    sequence,
)


def program(config: Config, lengths: Lengths) -> Program:
    """Tokens → embedding → N layers → logits (Vaswani et al. 2017, figure 1)."""
    build, layout = Builder(), layout_of(config)
    vocabulary = Axis("vocabulary", config.vocab_size)
    if config.has_decoder:
        x = _two_stacks(build, config, layout, vocabulary, lengths)
    else:
        tokens = sequence(build, "tokens", lengths.tokens, lengths.past)
        x = _stack(build, config, layout, vocabulary, tokens)
    tied = "embedding.tokens.weight" if config.tie_output else None
    logits(build, x, vocabulary, layout.model, tied=tied, bias=config.bias and tied is None)
    return build.program()


def layout_of(config: Config) -> Layout:
    """What the layers need of the configuration."""
    return Layout(
        d_model=config.d_model,
        heads=config.heads,
        d_ff=config.d_ff,
        norm=Norm(config.norm_epsilon),
        place=config.norm,
        activation=config.activation,
        head_width=config.d_model // config.heads,
        kv_heads=config.heads,
        bias=ALL_MATRICES if config.bias else frozenset(),
    )


def _embedding(config: Config) -> Embedding:
    scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
    return Embedding(scale=scale, positions=config.positions, max_length=config.max_length)


def _stack(build: Builder, config: Config, layout: Layout, vocabulary: Axis, tokens: Sequence) -> str:
    """The only stack of an encoder or a decoder, the first one of an encoder–decoder."""
    x = embed(build, tokens, vocabulary, layout, _embedding(config))
    build = build.within(config.stack)
    for i in range(config.layers):
        x = encoder_layer(build.within(str(i)), x, tokens, layout, Mask(causal=config.masks_future))
    return norm(build, x, layout) if config.norm == "pre" else x


def _two_stacks(build: Builder, config: Config, layout: Layout, vocabulary: Axis, lengths: Lengths) -> str:
    """The encoder, unless keys and values of its output were kept, then the decoder."""
    memory = None
    if lengths.past:
        source = kept_sequence(build, "tokens", lengths.tokens)
    else:
        source = sequence(build, "tokens", lengths.tokens)
        memory = _stack(build, config, layout, vocabulary, source)
    build = build.within("decoder")
    tokens = sequence(build, "decoder tokens", lengths.decoder, lengths.past)
    x = embed(build, tokens, vocabulary, layout, _embedding(config))
    for i in range(config.decoder_layers):
        x = decoder_layer(build.within(str(i)), x, memory, tokens, source, layout)
    return norm(build, x, layout) if config.norm == "pre" else x


VANILLA = Family("vanilla", Config.from_json, program)
