"""A model and its input, as the headless commands use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tui_transformer.cli.options import Edited, Flags
from tui_transformer.cli.output import note
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.model import Model
from tui_transformer.model.framing import Batch, batch_of
from tui_transformer.model.options import ModelOptions
from tui_transformer.text.encoding import Encoding, Token
from tui_transformer.text.samples import sample_sentence, sample_target
from tui_transformer.text.unknown import unknown_said
from tui_transformer.views.step_view import Labels

EXAMPLE_IDS = 8
"""Token IDs of the example for a model that has no vocabulary."""

SOURCE, TARGET = "tokens", "decoder tokens"
"""The names of the token sequences."""

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Inputs:
    """Token IDs of the sentences, a mask, and IDs of the decoder beside an encoder; None where there are none."""

    ids: Sequence[Ids] | None = None
    decoder_ids: Ids | None = None
    mask: Ids | None = None


@dataclass(frozen=True, eq=False)
class Session:
    """The model, the trace of the input that was given, and the words beside rows and columns.

    Attributes:
        predicted: The tokens at whose positions predictions are made.
    """

    model: Model
    trace: Trace
    labels: Labels
    predicted: Ids


def open_session(flags: Flags, otherwise: Inputs | None = None) -> Session:
    """Load the model and read its input; of several sentences one, padded as it is beside the others.

    Args:
        flags: What was given.
        otherwise: Token IDs, and their mask, to use where neither a sentence nor IDs were given.

    Raises:
        InputError: Something that was given cannot be used.
    """
    return _open(flags, otherwise or Inputs(), whole=False)


def open_batch(flags: Flags) -> Session:
    """The same with a trace of all sentences, and the words of one."""
    return _open(flags, Inputs(), whole=True)


def loaded(options: ModelOptions) -> Model:
    """The model; what its file has and nothing reads is said."""
    model = options.load()
    if model.unread_said is not None:
        note(model.unread_said)
    return model


def _open(flags: Flags, otherwise: Inputs, *, whole: bool) -> Session:
    given, options = Inputs(flags.token_rows(), flags.decoder_token_ids(), flags.token_mask()), flags.options()
    model, budget = loaded(options), options.budget
    if model.embedding is not None and model.embedding.vectors is not None and model.vocabulary is not None:
        note(model.embedding.vectors.said(model.vocabulary))
    if not model.config.vocab_size:
        ids, text = None if given.ids is None else given.ids[0], flags.sentence
        trace = model.trace(
            text,
            ids=ids,
            mask=given.mask,
            decoder_text=flags.decoder_text,
            decoder_ids=given.decoder_ids,
            budget=budget,
        )
        return Session(model, edited(flags, model, trace), Labels(), ())
    batch = batch_of(model, _sources(model, flags, given.ids, otherwise.ids), options.framing)
    if flags.item >= len(batch.encodings):
        raise UsageError(f"--item {flags.item}: there are {len(batch.encodings)} sentences, from 0")
    item: Any = slice(None) if whole and len(batch.encodings) > 1 else flags.item  # a list of rows has a batch axis
    words = {SOURCE: batch.encodings[flags.item]}
    if model.has_decoder or flags.decoder_text is not None or given.decoder_ids is not None:
        words[TARGET] = _target(model, flags, words[SOURCE], given.decoder_ids, otherwise.decoder_ids)
    mask = _mask(flags, given.mask, otherwise.mask, batch)
    trace = model.trace(
        ids=batch.ids[item],
        mask=None if mask is None else mask[item],
        decoder_ids=words[TARGET].ids if TARGET in words else None,
        segments=words[SOURCE].segments,
        budget=budget,
    )
    trace = edited(flags, model, trace)
    labels = Labels({name: _texts(encoding) for name, encoding in words.items()}, model.target_word, model.word)
    return Session(model, trace, labels, words.get(TARGET, words[SOURCE]).ids)


def edited(flags: Flags, model: Model, trace: Trace) -> Trace:
    """The trace with the edits that were given.

    Raises:
        InputError: One cannot be made.
    """
    if not isinstance(flags, Edited) or flags.edit is None:
        return trace
    from tui_transformer.cli.edits import changes

    return trace.edited(changes(model, trace.program, flags.edit))


def _mask(flags: Flags, given: Ids | None, otherwise: Ids | None, batch: Batch) -> Sequence[Ids] | None:
    """A row for every sentence: that which was given, or what padding tells; None where there is none."""
    if given is not None:
        if len(batch.encodings) > 1 or batch.masks is not None:
            raise UsageError("--mask is of one sentence without --pad-to: padding makes its own")
        return [given]
    if otherwise is not None and flags.text is None and flags.ids is None:
        return [otherwise]
    return batch.masks


def _sources(
    model: Model, flags: Flags, given: Sequence[Ids] | None, otherwise: Sequence[Ids] | None
) -> list[Encoding]:
    """The sentences, or an example where there is none."""
    if flags.text is not None:
        pair = flags.text_pair
        if pair is not None:
            return [read(model, model.encode(flags.sentence or "", cut=flags.cut, pair=pair), "the sentence")]
        return [read(model, model.encode(text, cut=flags.cut), "the sentence") for text in flags.text]
    rows = given if given is not None else otherwise
    if rows is not None:
        return [_named(model.word, ids) for ids in rows]
    if model.vocabulary is None:
        return [_named(model.word, tuple(range(min(EXAMPLE_IDS, model.config.vocab_size))))]
    return [read(model, model.encode(sample_sentence(model.vocabulary, model.name), cut=flags.cut), "the sentence")]


def _target(model: Model, flags: Flags, source: Encoding, given: Ids | None, otherwise: Ids | None) -> Encoding:
    """What the decoder beside an encoder has written; with a sentence alone, its start token or the same sentence."""
    ids = given if given is not None or flags.decoder_text is not None else otherwise
    if ids is None and flags.decoder_text is None and model.reads_again:
        ids = model.read_again(source.ids)
    if ids is not None:
        return _named(model.target_word, ids)
    text = flags.decoder_text
    if text is None and flags.text is None and flags.ids is None and model.vocabulary is not None:
        text = sample_target(model.vocabulary, model.name)
    return read(model, model.encode_target(text or "", cut=flags.cut), "the decoder's text")


def _named(word: Callable[[int], str], ids: Ids) -> Encoding:
    """Token IDs with their words."""
    return Encoding("", tuple(Token(token, word(token), 0, 0) for token in ids))


def _texts(encoding: Encoding) -> tuple[str, ...]:
    return tuple(token.text for token in encoding.tokens)


def read(model: Model, encoding: Encoding, what: str) -> Encoding:
    """The same; that a text was cut, and how many of its words the model does not know, is said."""
    if encoding.cut:
        note(f"{what} is cut: the model reads {len(encoding.tokens):,} tokens, {encoding.cut:,} are left out")
    unknown = unknown_said(encoding, model.vocabulary, what, model.name)
    if unknown is not None:
        note(unknown)
    return encoding
