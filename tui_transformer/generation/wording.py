"""Tokens as the text that they add, and as names one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.vocabulary import Vocabulary

Decode = Callable[[list[int]], str]

WINDOW = 8
"""Tokens that are decoded together: enough for the bytes of one character and the space before it."""

INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""Sign for bytes that are no character yet."""


def token_texts(model: Model, ids: Sequence[int], *, source: bool = False) -> list[str]:
    """Text that every token adds, all together the whole; `source`: to the text of the encoder."""
    tokenizer = model.tokenizer if source else _writer(model)
    return [_text(tokenizer, ids[max(place - WINDOW, 0) : place], token) for place, token in enumerate(ids)]


def token_text(model: Model, before: Sequence[int], token: int) -> str:
    """Text that a token adds to that of those before it; an ID where the model has no words.

    Bytes of a character add nothing until the last of them is there.
    """
    return _text(_writer(model), before, token)


def _writer(model: Model) -> Tokenizer | None:
    return None if model.tokenizer is None else target_tokenizer(model.tokenizer)


def _text(tokenizer: Tokenizer | None, before: Sequence[int], token: int) -> str:
    if tokenizer is None:
        return f" {token}" if before else str(token)
    return _added(tokenizer.decode, tokenizer.vocabulary, tuple(before), token)


def token_name(model: Model, before: Sequence[int], token: int) -> str:
    """A token by itself: a word as it is, a piece of one in quotes with the space that it begins with."""
    words = model.target_vocabulary
    if words is None or not 0 <= token < words.size:
        return f"ID {token}"
    if words.kind == "words" or token in words.special_ids:
        return words.word(token)
    added = token_text(model, before, token).lstrip(INCOMPLETE)
    return f'"{visible(added)}"' if added and INCOMPLETE not in added else words.reading(token)


@lru_cache(maxsize=8192)
def _added(decode: Decode, words: Vocabulary, before: tuple[int, ...], token: int) -> str:
    if token >= words.size:
        return f" {token}"
    tail = [each for each in before if each < words.size]
    text, so_far = _complete(decode, [*tail, token]), _complete(decode, tail)
    return text[len(so_far) :] if text.startswith(so_far) else words.word(token)


def _complete(decode: Decode, ids: list[int]) -> str:
    """The text of IDs without the bytes at the end that are no character yet."""
    try:
        return decode(ids).rstrip(INCOMPLETE) if ids else ""
    except InputError:
        return ""
