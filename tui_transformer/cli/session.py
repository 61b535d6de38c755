"""A model and its input, as the headless commands use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tui_transformer.cli.options import Edited, Flags
from tui_transformer.cli.output import note
from tui_transformer.errors import UsageError

if TYPE_CHECKING:
    from tui_transformer.engine.edits import Change
    from tui_transformer.engine.program import Program
    from tui_transformer.engine.trace import Trace
    from tui_transformer.model import Model
    from tui_transformer.model.options import Listen, ModelOptions, Reading
    from tui_transformer.session.session import Session
    from tui_transformer.text.encoding import Encoding


def open_session(flags: Flags, otherwise: Reading | None = None) -> Session:
    """Load the model and read its input, else `otherwise`; of several sentences one, padded as beside the others."""
    from tui_transformer.session.open_session import session_of

    given, options = flags.reading(otherwise), flags.options()
    model = flags.featured(loaded(options))
    if model.embedding is not None and model.embedding.vectors is not None and model.vocabulary is not None:
        note(model.embedding.vectors.said(model.vocabulary))
    session = session_of(model, given, options)
    for item, encoding in enumerate(session.framed.encodings):
        read(model, encoding, "the sentence", session.framed.length(item))
    if session.decoder_encoding is not None:
        read(model, session.decoder_encoding, "the decoder's text")
    edits = edits_of(flags, model, session.trace.program)
    return session.with_edits(*edits) if edits else session


def trace_of_all(session: Session) -> Trace:
    """The trace of all sentences that were given; several have a batch axis."""
    batch, target = session.framed, session.decoder_encoding
    if len(batch.encodings) == 1:
        return session.trace
    trace = session.model.trace(
        ids=batch.ids,
        mask=batch.masks,
        decoder_ids=None if target is None else target.ids,
        segments=session.encoding.segments,
        budget=session.budget,
    )
    return trace.edited(session.edits)


def loaded(options: ModelOptions) -> Model:
    """The model; what has to be known of it is said."""
    model = options.load()
    for remark in model.remarks:
        note(remark)
    return model


def edits_of(flags: Flags, model: Model, program: Program) -> Sequence[Change]:
    """The edits that were given, as they are in a program."""
    if not isinstance(flags, Edited) or flags.edit is None:
        return ()
    from tui_transformer.session.edit_format import changes

    try:
        with unknown_words(model, "the texts of --edit") as listen:
            return changes(model, program, flags.edit, listen)
    except UsageError as error:
        raise UsageError(f"--edit: {error}") from error


def read(model: Model, encoding: Encoding, what: str, length: int | None = None) -> Encoding:
    """The same; that a text was cut, and how many of its words the model does not know, is said.

    `what` is what it is called, `length` how many tokens it has without padding; by default there is none.
    """
    if encoding.cut:
        kept = len(encoding.tokens) if length is None else length
        note(f"{what} is cut: the model reads {kept:,} tokens, {encoding.cut:,} are left out")
    with unknown_words(model, what) as listen:
        listen(encoding)
    return encoding


@contextmanager
def unknown_words(model: Model, what: str) -> Iterator[Listen]:
    """What is told of texts, and says behind them how many words of all the model does not know."""
    from tui_transformer.text.known_words import Unknown

    unknown = Unknown()
    yield unknown.add
    said = unknown.describe(model.vocabulary, what, model.name)
    if said is not None:
        note(f"{said}; their vectors are 0" if model.unknown == "zero" else said)
