"""Tokens that are named on the command line: by a word of the vocabulary, or by an ID."""

from __future__ import annotations

from contextlib import suppress

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import Vocabulary


def token_ids(model: Model, text: str) -> tuple[int, ...]:
    """The IDs of words that the model writes, with commas between them.

    Raises:
        InputError: One of them is no word of the vocabulary, and no ID.
    """
    return tuple(_token_id(model.target_vocabulary, model.target_size, word) for word in text.split(","))


def read_id(model: Model, word: str) -> int:
    """The ID of a word that the model reads.

    Raises:
        InputError: As `token_ids`.
    """
    return _token_id(model.vocabulary, model.config.vocab_size, word)


def _token_id(vocabulary: Vocabulary | None, size: int, word: str) -> int:
    if vocabulary is not None:
        with suppress(InputError):
            return vocabulary.token_id(word)
    if word.strip().isdecimal() and len(word) < 10 and int(word) < size:
        return int(word)
    hint = "" if vocabulary is None else ": `tui-transformer vocab search` finds one"
    raise InputError(f"{visible(word.strip()[:40])!r} is no word of the vocabulary and no ID{hint}")
