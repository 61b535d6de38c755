"""A session of a model that is opened, with a sentence to begin with."""

from __future__ import annotations

from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.options import Ids, ModelOptions, Reading
from tui_transformer.records import replace
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.text.known_words import sample_sentence, sample_target

EXAMPLE_IDS = 8
"""Token IDs of the example for a model that has no vocabulary."""


def open_session(options: ModelOptions, text: str | None = None, ids: Ids | None = None, **more: Any) -> Session:
    """The model with its sentence, and with what its decoder has written where it reads that beside; checked.

    Args:
        options: The model.
        text: The sentence; a sample where neither it nor IDs are given.
        ids: Its token IDs.
        more: Other fields of a `Reading`.
    """
    return session_of(options.load(), Reading(text, ids, **more), options)


def session_of(model: Model, reading: Reading, options: ModelOptions) -> Session:
    """The same of a model that is loaded; nothing is computed yet.

    Raises:
        InputError: The model cannot read what is given.
    """
    if reading.decoder_text is not None or reading.decoder_ids is not None:
        model.encode_target()
    if reading.text is not None and reading.ids is not None:
        raise InputError("give either a text or token IDs")
    if not model.config.vocab_size and any(each is not None for each in (reading.text, reading.ids, reading.mask)):
        raise InputError(f"{model.name} reads no tokens: its Q, K and V are given")
    reading = _with_example(model, reading)
    session = Session(
        model,
        reading.text or "",
        reading.ids,
        budget=options.budget,
        cut=options.cut,
        framing=options.framing,
        batch=reading.batch,
        item=reading.item,
        pair=reading.pair,
        mask=reading.mask,
        decoder_text=reading.decoder_text or "",
        decoder_ids=reading.decoder_ids,
    )
    _ = session.trace
    return session


def _with_example(model: Model, reading: Reading) -> Reading:
    """With a sentence of the program, where none is given to a model that reads one."""
    if reading.text is not None or reading.ids is not None or not model.config.vocab_size:
        return reading
    if model.vocabulary is None:
        return replace(reading, ids=tuple(range(min(EXAMPLE_IDS, model.config.vocab_size))))
    reading = replace(reading, text=sample_sentence(model.vocabulary, model.name))
    if reading.decoder_text is not None or reading.decoder_ids is not None or model.reads_again:
        return reading
    return replace(reading, decoder_text=sample_target(model.vocabulary, model.name))


def model_name(session: Session) -> str:
    """The model in one line."""
    summary = session.model.config.summary
    seed = "" if session.model.seed is None else f" · seed {session.model.seed}"
    name = visible(session.model.name)
    alone = summary.startswith(name) or session.model.folder is None
    return f"{summary}{seed}" if alone else f"{name} · {summary}{seed}"
