"""A line for the shell that computes again what is explored."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tui_transformer.features.steps import PlacedFeatures
from tui_transformer.model import Model
from tui_transformer.model.local_models import TRAINED
from tui_transformer.session.edit_format import as_written
from tui_transformer.session.session import Session

OF_WORDS = ("model_type", "architecture", "vocab_size", "pad_id", "start_id")
"""Settings that follow from the model's name and its words."""


def shell_line(session: Session, command: str, *own: str) -> str:
    """`tui-transformer COMMAND` with the model, what it reads, its edits that can be written, and these options."""
    return " ".join(map(quoted, ("tui-transformer", command, *_model(session), *_read(session), *own)))


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
            yield from ("--vocab", model.vocabulary.name) if words.name != model.vocabulary.name else ()
    if str(model.backend.dtype) != "float32":
        yield from ("--dtype", str(model.backend.dtype))
    for placed in model.added:
        if isinstance(placed, PlacedFeatures):
            yield from ("--features", str(placed.features.path), "--at", placed.spots[0].name)


def _read(session: Session) -> Iterator[str]:
    words = session.model.vocabulary is not None and session.ids is None
    yield from ("--text", session.text) if words else ("--ids", _listed(session.encoding.ids))
    if session.decoder_ids is not None:
        yield from ("--decoder-ids", _listed(session.decoder_ids))
    elif session.decoder_text:
        yield from ("--decoder-text", session.decoder_text)
    for edit in session.edits:
        written = as_written(edit, session.base.program)
        yield from () if written is None else ("--edit", written)


def _listed(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
