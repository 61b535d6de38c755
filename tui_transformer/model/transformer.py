"""The whole model, from its description to the steps: tokens → embedding → stacks → head."""

from __future__ import annotations

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.program import Builder, Program
from tui_transformer.model.description import LabelHead, SentenceHead, Stack, Transformer
from tui_transformer.model.embedding import embed
from tui_transformer.model.head import label_head, sentence_head, word_head
from tui_transformer.model.sequence import Lengths, Sequence, kept_sequence, sequence
from tui_transformer.model.stack import run_stack

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
