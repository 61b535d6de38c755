"""The text of tokens: as they are written behind a prompt, and one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.vocabulary import Vocabulary

INCOMPLETE = "\ufffd"
"""Sign that a character of several bytes is decoded to while some of them are missing."""


class TextStream:
    """Gives, for each token, the text that it adds behind a prompt.

    It is decoded together with the tokens before it and the difference given, so that spaces between pieces are right.
    Bytes that are half of a character are held back until the rest is there. Special tokens are left out, as they stand
    for no text (an unknown word of a word list is not), and so are IDs past the vocabulary, which some models have.
    Control characters are made visible, all but the ends of lines.
    """

    def __init__(self, model: Model, prompt: Sequence[int] = ()) -> None:
        """The prompt itself is not given again; the start token of a decoder beside an encoder is no text."""
        self._ids = list(prompt[1:] if model.has_decoder else prompt)
        self._tokenizer = _writer(model)
        words = model.target_vocabulary
        self._words = 0 if words is None else words.size
        self._hidden: frozenset[int] = frozenset() if words is None else words.special_ids
        if words is not None and words.kind in ("words", "characters", "wordpiece"):  # it is a word like others
            self._hidden -= {words.unknown_id}
        self._context, self._read = 0, len(self._ids)

    def prompt(self) -> str:
        """The text of the tokens that were given, before any other is added."""
        return self._text(0, self._read).rstrip(INCOMPLETE)

    def add(self, token: int) -> str:
        """The text that is whole with this token, often of one token, sometimes none."""
        self._ids.append(token)
        more = self.end()
        if not more or more.endswith(INCOMPLETE):
            return ""
        self._context, self._read = self._read, len(self._ids)
        return more

    def end(self) -> str:
        """Text that was held back."""
        before = self._text(self._context, self._read).rstrip(INCOMPLETE)
        return self._text(self._context, len(self._ids))[len(before) :]

    def _text(self, start: int, stop: int) -> str:
        ids = self._ids[start:stop]
        if self._tokenizer is None:
            return "".join(f" {token}" for token in ids)
        text = self._tokenizer.decode([token for token in ids if token < self._words and token not in self._hidden])
        return "\n".join(map(visible, text.split("\n")))


# Tokens one by one

Decode = Callable[[list[int]], str]

WINDOW = 8
"""Tokens that are decoded together: enough for the bytes of one character and the space before it."""


def token_texts(model: Model, ids: Sequence[int], *, source: bool = False) -> list[str]:
    """Text that every token adds, all together the whole; `source`: to the text of the encoder."""
    before = (ids[max(place - WINDOW, 0) : place] for place in range(len(ids)))
    return [token_text(model, some, token, source=source) for some, token in zip(before, ids, strict=True)]


def token_text(model: Model, before: Sequence[int], token: int, *, source: bool = False) -> str:
    """Text that a token adds to that of those before it; an ID where the model has no words.

    Bytes of a character add nothing until the last of them is there.
    """
    tokenizer = model.tokenizer if source else _writer(model)
    if tokenizer is None:
        return f" {token}" if before else str(token)
    return _added(tokenizer.decode, tokenizer.vocabulary, tuple(before), token)


def _writer(model: Model) -> Tokenizer | None:
    return None if model.tokenizer is None else target_tokenizer(model.tokenizer)


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
