"""Tokens that are named on the command line: by a word of the vocabulary, or by an ID."""

from __future__ import annotations

from contextlib import suppress

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text.display import visible


def token_ids(model: Model, text: str) -> tuple[int, ...]:
    """The IDs of words with commas between them.

    Raises:
        InputError: One of them is no word of the vocabulary, and no ID.
    """
    return tuple(_token_id(model, word) for word in text.split(","))


def _token_id(model: Model, word: str) -> int:
    with suppress(InputError):
        return model.token_id(word)
    if word.strip().isdecimal() and len(word) < 10 and int(word) < model.target_size:
        return int(word)
    hint = "" if model.vocabulary is None else ": `tui-transformer vocab search` finds one"
    raise InputError(f"{visible(word.strip()[:40])!r} is no word of the vocabulary and no ID{hint}")
