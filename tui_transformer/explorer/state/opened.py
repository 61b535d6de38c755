"""A session of a model that is opened, with a sentence to begin with."""

from __future__ import annotations

from tui_transformer.errors import InputError
from tui_transformer.explorer.state.session import Session
from tui_transformer.model.options import ModelOptions
from tui_transformer.text.samples import sample_sentence, sample_target


def open_session(
    options: ModelOptions,
    text: str | None,
    ids: tuple[int, ...] | None,
    *,
    pair: str | None = None,
    mask: tuple[int, ...] | None = None,
    decoder_text: str | None = None,
    decoder_ids: tuple[int, ...] | None = None,
) -> Session:
    """The model with its sentence, and with what its decoder has written where it reads that beside; checked."""
    model = options.load()
    if decoder_text is not None or decoder_ids is not None:
        model.encode_target()
    if text is not None and ids is not None:
        raise InputError("give either a text or token IDs")
    if not model.config.vocab_size and any(given is not None for given in (text, ids, mask)):
        raise InputError(f"{model.name} reads no tokens: its Q, K and V are given")
    if text is None and ids is None and model.config.vocab_size:
        if model.vocabulary is None:
            ids = tuple(range(min(8, model.config.vocab_size)))
        else:
            text = sample_sentence(model.vocabulary, model.name)
            if decoder_text is None and decoder_ids is None and not model.reads_again:
                decoder_text = sample_target(model.vocabulary, model.name)
    session = Session(
        model,
        text or "",
        ids,
        pair=pair,
        mask=mask,
        budget=options.budget,
        cut=options.cut,
        framing=options.framing,
        decoder_text=decoder_text or "",
        decoder_ids=decoder_ids,
    )
    _ = session.trace
    return session
