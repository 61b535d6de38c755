"""A model and its input, as the headless commands use them."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import note
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model
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
    """Token IDs of the sentence, its mask, and IDs of the decoder beside an encoder; None where there are none."""

    ids: Ids | None = None
    decoder_ids: Ids | None = None
    mask: Ids | None = None


@dataclass(frozen=True, eq=False)
class Session:
    """The model, the trace of the input that was given, and the words beside rows and columns."""

    model: Model
    trace: Trace
    labels: Labels


def open_session(flags: Flags, otherwise: Inputs | None = None) -> Session:
    """Load the model and read its input.

    Args:
        flags: What was given.
        otherwise: Token IDs, and their mask, to use where neither a sentence nor IDs were given.

    Raises:
        InputError: Something that was given cannot be used.
    """
    given = Inputs(flags.token_ids(), flags.decoder_token_ids(), flags.token_mask())
    otherwise = otherwise or Inputs()
    options = flags.options()
    model, budget = options.load(), options.budget
    if not model.config.vocab_size:
        text, target, mask = flags.text, flags.decoder_text, given.mask
        trace = model.trace(
            text, ids=given.ids, mask=mask, decoder_text=target, decoder_ids=given.decoder_ids, budget=budget
        )
        return Session(model, trace, Labels())
    words = {SOURCE: _source(model, flags, given.ids, otherwise.ids)}
    if model.has_decoder or flags.decoder_text is not None or given.decoder_ids is not None:
        words[TARGET] = _target(model, flags, given.decoder_ids, otherwise.decoder_ids)
    ids, decoder_ids = (words[name].ids if name in words else None for name in (SOURCE, TARGET))
    segments = words[SOURCE].segments
    theirs = flags.text is None and given.ids is None
    mask = otherwise.mask if theirs and given.mask is None else given.mask
    trace = model.trace(ids=ids, mask=mask, decoder_ids=decoder_ids, segments=segments, budget=budget)
    return Session(model, trace, Labels({name: _texts(encoding) for name, encoding in words.items()}, model.word))


def _source(model: Model, flags: Flags, given: Ids | None, otherwise: Ids | None) -> Encoding:
    """The sentence, or an example where there is none."""
    if flags.text is not None:
        return read(model, model.encode(flags.text, cut=flags.cut, pair=flags.text_pair), "the sentence")
    ids = given if given is not None else otherwise
    if ids is not None:
        return _named(model, ids)
    if model.vocabulary is None:
        return _named(model, tuple(range(min(EXAMPLE_IDS, model.config.vocab_size))))
    return read(model, model.encode(sample_sentence(model.vocabulary, model.name), cut=flags.cut), "the sentence")


def _target(model: Model, flags: Flags, given: Ids | None, otherwise: Ids | None) -> Encoding:
    """What the decoder beside an encoder has written; with a sentence alone, its start token."""
    ids = given if given is not None or flags.decoder_text is not None else otherwise
    if ids is not None:
        return _named(model, ids)
    text = flags.decoder_text
    if text is None and flags.text is None and flags.ids is None and model.vocabulary is not None:
        text = sample_target(model.vocabulary, model.name)
    return read(model, model.encode_target(text or "", cut=flags.cut), "the decoder's text")


def _named(model: Model, ids: Ids) -> Encoding:
    """Token IDs with their words."""
    return Encoding("", tuple(Token(token, model.word(token), 0, 0) for token in ids))


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
