"""How several tokenizers cut one text, word beside word."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Encoding, Token, Tokenizer
from tui_transformer.text.vocabulary import Vocabulary

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Cut:
    """One way to cut the text.

    Attributes:
        tokens: All of them, and how many stand for something that the vocabulary does not have.
        parts: The tokens of each row, with one sign for a space: before the text, of each of its words, after it.
    """

    name: str
    tokens: int
    unknown: int
    parts: tuple[tuple[Token, ...], ...]


@dataclass(frozen=True)
class Cuts:
    """The rows that all cuts share: nothing, the words of the text (what white space is around), nothing."""

    rows: tuple[str, ...]
    cuts: tuple[Cut, ...]


def cut_by(text: str, tokenizers: Sequence[Tokenizer]) -> Cuts:
    """Cut a text by each tokenizer; a token belongs to the word that its last character is in.

    Raises:
        InputError: The text is too long.
    """
    words = list(_WORD.finditer(text))
    starts = [word.start() for word in words]
    cuts = (_cut(each.vocabulary, each.encode(text), starts) for each in tokenizers)
    return Cuts(("", *(word[0] for word in words), ""), tuple(cuts))


def _cut(words: Vocabulary, encoding: Encoding, starts: Sequence[int]) -> Cut:
    parts: list[list[Token]] = [[] for _ in range(len(starts) + 2)]
    for token in encoding.tokens:
        shown = token if token.unknown else replace(token, text=words.label(token.text))
        parts[_row(token, starts, len(encoding.text))].append(shown)
    unknown = sum(token.unknown for token in encoding.tokens)
    return Cut(words.name, len(encoding.tokens), unknown, tuple(map(tuple, parts)))


def _row(token: Token, starts: Sequence[int], length: int) -> int:
    if token.start == token.end:
        return 0 if token.end == 0 else len(starts) + 1 if token.end == length else bisect_right(starts, token.end)
    return bisect_right(starts, token.end - 1)


def joined(tokens: Sequence[Token]) -> str:
    """Tokens beside each other, an unknown one with a question mark."""
    return " ".join(map(shown, tokens))


def shown(token: Token) -> str:
    """A token as it is written between others, an unknown one with a question mark."""
    return f"{visible(token.text)}?" if token.unknown else visible(token.text)
