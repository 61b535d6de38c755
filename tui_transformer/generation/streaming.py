"""The text of tokens that come one at a time: what a token adds, as soon as it is whole."""

from __future__ import annotations

from collections.abc import Sequence

from tui_transformer.model import Model
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import visible

INCOMPLETE = "\ufffd"
"""Sign that a character of several bytes is decoded to while some of them are missing."""

LISTS = ("words", "characters", "wordpiece")
"""Kinds of vocabularies whose unknown word is a word like others."""


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
        self._tokenizer = None if model.tokenizer is None else target_tokenizer(model.tokenizer)
        self._hidden = _without_text(model)
        self._words = 0 if model.target_vocabulary is None else model.target_vocabulary.size
        self._context, self._read = 0, len(self._ids)

    def prompt(self) -> str:
        """The text of the tokens that were given, before any other is added."""
        return self._text(0, self._read).rstrip(INCOMPLETE)

    def add(self, token: int) -> str:
        """The text that is whole with this token, often of one token, sometimes none."""
        self._ids.append(token)
        more = self._more()
        if not more or more.endswith(INCOMPLETE):
            return ""
        self._context, self._read = self._read, len(self._ids)
        return more

    def end(self) -> str:
        """Text that was held back."""
        return self._more()

    def _more(self) -> str:
        before = self._text(self._context, self._read).rstrip(INCOMPLETE)
        return self._text(self._context, len(self._ids))[len(before) :]

    def _text(self, start: int, stop: int) -> str:
        """The text of some of the tokens."""
        ids = self._ids[start:stop]
        if self._tokenizer is None:
            return "".join(f" {token}" for token in ids)
        text = self._tokenizer.decode([token for token in ids if token < self._words and token not in self._hidden])
        return "\n".join(map(visible, text.split("\n")))


def _without_text(model: Model) -> frozenset[int]:
    """The tokens that stand for no text."""
    words = model.target_vocabulary
    if words is None:
        return frozenset()
    return words.special_ids - {words.unknown_id} if words.kind in LISTS else words.special_ids
