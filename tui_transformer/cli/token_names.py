"""Tokens that are named on the command line: by a word of the vocabulary, or by an ID."""

from __future__ import annotations

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text.display import visible

BEFORE = ("", "Ġ", "▁")
"""Prefixes of a word in a vocabulary: nothing, or its sign for a space."""


def token_ids(model: Model, text: str) -> tuple[int, ...]:
    """The IDs of words with commas between them.

    Raises:
        InputError: One of them is no word of the vocabulary, and no ID.
    """
    return tuple(_token_id(model, word) for word in text.split(","))


def _token_id(model: Model, word: str) -> int:
    ids = {} if model.target_vocabulary is None else model.target_vocabulary.ids
    for spelled in (word, *(f"{before}{word.strip()}" for before in BEFORE)):
        if spelled in ids:
            return ids[spelled]
    if word.strip().isdecimal() and len(word) < 10 and int(word) < model.target_size:
        return int(word)
    hint = "" if model.vocabulary is None else ": `tui-transformer vocab search` finds one"
    raise InputError(f"{visible(word.strip()[:40])!r} is no word of the vocabulary and no ID{hint}")
