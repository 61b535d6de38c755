"""A session of a model that is opened, with a sentence to begin with; and the line for a shell that opens it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.features.steps import PlacedFeatures
from tui_transformer.model import Model
from tui_transformer.model.local_models import TRAINED
from tui_transformer.model.options import PLAIN, Ids, ModelOptions, Reading
from tui_transformer.model.word_vectors import NORMAL
from tui_transformer.records import replace
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.text.known_words import sample_sentence, sample_target
from tui_transformer.text.vocabulary import Vocabulary, built_in_vocabularies

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
    given = {**asdict(reading), "text": reading.text or "", "decoder_text": reading.decoder_text or ""}
    session = Session(model, budget=options.budget, cut=options.cut, framing=options.framing, **given)
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


EditLines = Sequence[str | None]
"""Edits as they are written, None for one that cannot be: by default those of the session."""

OF_WORDS = ("model_type", "architecture", "vocab_size", "pad_id", "start_id")
"""Settings that follow from the model's name and its words."""


def shell_line(session: Session, command: str, *own: str, edits: EditLines | None = None) -> str:
    """`tui-transformer COMMAND` with the model, what it reads, its edits that can be written, and these options."""
    as_it_is = command == "generate"  # a prompt: nothing is put around it there
    changed = (part for line in _edits(session, edits) if line is not None for part in ("--edit", line))
    words = ("tui-transformer", command, *_model(session), *_read(session, as_it_is), *changed, *own)
    return " ".join(map(quoted, words))


def unwritten(session: Session, edits: EditLines | None = None) -> str:
    """The edits that no such line has, in words; "" where it has all."""
    count = sum(line is None for line in _edits(session, edits))
    return f"{count} edit{'s' * (count > 1)} with too many numbers" if count else ""


def quoted(text: str) -> str:
    """A text as a shell takes it for one, in double quotes where it has single ones."""
    if "'" in text and not set(text) & {*'"$`\\!\n'}:  # which it reads otherwise between double quotes
        return f'"{text}"'
    return shlex.quote(text)


def _model(session: Session) -> Iterator[str]:
    model = session.model
    name = model.name if model.folder in (None, TRAINED / model.name) else str(model.folder)
    yield from ("--model", name)
    if model.folder is None:
        usual, own = (each.config.to_json() for each in (Model.load(name, vocabulary=model.vocabulary), model))
        changed = {key: value for key, value in own.items() if key not in OF_WORDS and usual.get(key) != value}
        for key, value in changed.items():
            option = key.replace("_", "-")
            yield from (
                [f"--{'' if value else 'no-'}{option}"] if isinstance(value, bool) else [f"--{option}", f"{value}"]
            )
        if model.seed:
            yield from ("--seed", str(model.seed))
        if model.vocabulary is not None and (words := Model.load(name).vocabulary) is not None:
            yield from ("--vocab", _place(model.vocabulary)) if words.path != model.vocabulary.path else ()
        if model.embedding is not None:
            start, vectors = model.embedding.start, model.embedding.vectors
            yield from ("--embedding", start) if start != NORMAL else ()
            yield from () if vectors is None else ("--vectors", str(vectors.path))
    if model.unknown != "token":
        yield from ("--unknown", model.unknown)
    if str(model.backend.dtype) != "float32":
        yield from ("--dtype", str(model.backend.dtype))
    for placed in model.added:
        if isinstance(placed, PlacedFeatures):
            yield from ("--features", str(placed.features.path), "--at", placed.spots[0].name)


def _place(words: Vocabulary) -> str:
    """The built-in name of a vocabulary, or its file."""
    return words.name if words.path is None or words.name in built_in_vocabularies() else str(words.path)


def _read(session: Session, as_it_is: bool) -> Iterator[str]:  # noqa: FBT001 - of this file alone
    framed = bool(session.batch) or session.framing != PLAIN or session.pair is not None
    words = session.model.vocabulary is not None and session.ids is None and not (as_it_is and framed)
    ids, mask = session.encoding.ids, session.mask_read
    if words:
        yield from ("--text", session.text)
        yield from () if session.pair is None else ("--text-pair", session.pair)
        yield from ("--bracket",) * session.framing.bracket
    else:
        yield from ("--ids", _listed(ids))
    if words and session.mask is None:  # padded to the length of others, too
        yield from () if mask is None else ("--pad-to", str(len(ids)))
    elif mask is not None:
        yield from ("--mask", _listed(mask))
    yield from ("--cut",) * session.cut
    if session.decoder_ids is not None:
        yield from ("--decoder-ids", _listed(session.decoder_ids))
    elif session.decoder_text:
        yield from ("--decoder-text", session.decoder_text)


def _edits(session: Session, edits: EditLines | None) -> EditLines:
    from tui_transformer.session.edit_format import kept

    return kept(session) if edits is None else edits


def _listed(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
