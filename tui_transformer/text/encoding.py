"""The common part of tokenizers: tokens, the encoding of a text, and the methods that the rest of the program calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, runtime_checkable

from tui_transformer.errors import InputError
from tui_transformer.text.vocabulary import Vocabulary

MAX_CHARACTERS = 1_000_000
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its ID, its text (of the vocabulary, or an unknown word as written) and its place in the text."""

    id: int
    text: str
    start: int
    end: int
    unknown: bool = False
    special: bool = False


@dataclass(frozen=True)
class Encoding:
    """A text and its tokens.

    Attributes:
        cut: How many tokens were left out to keep to a limit.
        segments: Of each token of a pair of sentences, which it is of; None where all are of one.
    """

    text: str
    tokens: tuple[Token, ...]
    cut: int = 0
    segments: tuple[int, ...] | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """The IDs of the tokens."""
        return tuple(token.id for token in self.tokens)


class Tokenizer(Protocol):
    """Turns text into tokens of a vocabulary, and IDs into text."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that the IDs stand for."""

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into tokens.

        Args:
            text: At most `MAX_CHARACTERS` characters.
            max_tokens: The most tokens allowed, those that the tokenizer adds included.
            cut: Whether to leave out what exceeds `max_tokens`, rather than to refuse the text.

        Raises:
            InputError: If the text is too long.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of IDs.

        Raises:
            InputError: If an ID is not in the vocabulary.
        """


@dataclass(frozen=True)
class Piece:
    """A token of a pair: its ID, the sentence that it is of (None where it was added), its place there, its segment."""

    id: int
    sentence: int | None
    start: int
    end: int
    segment: int


@runtime_checkable
class Pairs(Protocol):
    """A tokenizer that knows what stands around and between two sentences."""

    def pair(self, first: str, second: str) -> Sequence[Piece]:
        """The tokens of both, with those that are added."""


def without_surrogates(text: str) -> str:
    """The text in as many characters, without those that UTF-8 cannot write."""
    return _SURROGATES.sub("\ufffd", text)


def check_length(text: str) -> None:
    """Raise InputError for more than `MAX_CHARACTERS`."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the text has {len(text):,} characters, the limit is {MAX_CHARACTERS:,}: use a shorter one")


def encoded(
    text: str,
    matches: Iterator[re.Match[str]],
    token: Callable[[re.Match[str]], Token],
    *,
    max_tokens: int | None,
    cut: bool,
) -> Encoding:
    """The tokens of a text, each made of a match; the matches behind the limit are only counted.

    Raises:
        InputError: There are more than `max_tokens`, and they are not to be cut.
    """
    tokens = tuple(map(token, islice(matches, max_tokens)))
    left = sum(1 for _ in matches)
    if left and not cut:
        raise too_many(len(tokens) + left, max_tokens)
    return Encoding(text, tokens, left)


def too_many(count: int, limit: int | None, precision: str = "") -> InputError:
    """The refusal of a text of so many tokens."""
    return InputError(f"the text has {precision}{count:,} tokens, the limit is {limit:,}: use a shorter one, or --cut")
