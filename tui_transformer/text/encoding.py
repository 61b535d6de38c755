"""Tokens: encodings of a text or of two sentences, the text of IDs, what every tokenizer can, and several compared."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, replace
from tui_transformer.text.display import visible
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
    """A text and its tokens, of which `cut` more were left out to keep to a limit.

    `segments` says of each token of a pair of sentences which it is of; None where all are of one.
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


def token_at(vocabulary: Vocabulary, token_id: int, text: str, start: int, end: int) -> Token:
    """The token of an ID at its place in a text; one that is unknown has the text that is written there."""
    word, written = vocabulary.words[token_id], text[start:end]
    if token_id == vocabulary.unknown_id and written not in ("", word):
        return Token(token_id, written, start, end, unknown=True)
    return Token(token_id, word, start, end, special=token_id in vocabulary.special_ids)


def within(encoding: Encoding, most: int) -> Encoding:
    """The text with so many tokens at most: its last words go, what was put before and behind it stays.

    Raises:
        InputError: No word would be left.
    """
    tokens = encoding.tokens
    over = len(tokens) - most
    if over <= 0:
        return encoding
    own = [i for i, token in enumerate(tokens) if not token.special or token.start != token.end]
    first, last = (own[0], own[-1] + 1) if own else (len(tokens), 0)
    if last - over <= first:
        around = " and ".join(visible(token.text) for token in (*tokens[:first], *tokens[last:]))
        raise InputError(f"{most} tokens leave no room for a word beside {around}")
    segments = encoding.segments
    return replace(
        encoding,
        tokens=tokens[: last - over] + tokens[last:],
        cut=encoding.cut + over,
        segments=None if segments is None else segments[: last - over] + segments[last:],
    )


def over(count: int, max_tokens: int | None, own: int, *, cut: bool) -> int:
    """How many of a text's own tokens have to go, of so many with those that are added.

    Raises:
        InputError: There are too many, and they are not to be cut, or it would not be enough.
    """
    left = 0 if max_tokens is None else max(0, count - max_tokens)
    if left and (not cut or left > own):
        raise too_many(count, max_tokens)
    return left


def too_many(count: int, limit: int | None, precision: str = "") -> InputError:
    """The refusal of a text of so many tokens."""
    advice = "use a shorter one, or cut it (--cut, cut=True)"
    return InputError(f"the text has {precision}{count:,} tokens, the limit is {limit:,}: {advice}")


def decoded(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text up to the end word, without the beginning and without padding.

    Raises:
        InputError: An ID is not in the vocabulary.
    """
    return tokenizer.decode(tuple(written(tokenizer.vocabulary, ids)))


def written(vocabulary: Vocabulary, ids: Sequence[int]) -> Iterator[int]:
    """The IDs up to the end, without the beginning and without padding; an end that comes first begins a text."""
    begin, end = vocabulary.around_ids
    for place, token in enumerate(ids):
        if token == end and place:
            return
        if token not in (begin, end, vocabulary.pad_id):
            yield token


BETWEEN = " "
"""Between two sentences that are written as one text."""


def encode_pair(tokenizer: Tokenizer, first: str, second: str, max_tokens: int, *, cut: bool = False) -> Encoding:
    """The tokens of two sentences, with the segment of each; the text is both with a space between.

    With `cut`, the last words of the second sentence are left out where there are more than `max_tokens`.

    Raises:
        InputError: The tokenizer has no pairs, or there are too many tokens.
    """
    pieces = tokenizer.pair(first, second) if isinstance(tokenizer, Pairs) else ()
    sentences = [piece.sentence for piece in pieces]
    last = max((i for i, sentence in enumerate(sentences) if sentence == 0), default=0)
    first_of_second = next((i for i, sentence in enumerate(sentences) if sentence == 1), len(sentences))
    if None not in sentences[last:first_of_second]:
        name = visible(tokenizer.vocabulary.name)
        raise InputError(f"{name} puts nothing between two sentences: give one, or a model that reads pairs, as BERT")
    if len(pieces) > max_tokens and not cut:
        raise too_many(len(pieces), max_tokens)
    whole, tokens, at = f"{first}{BETWEEN}{second}", list[Token](), 0
    for piece in pieces:
        shift = len(first) + len(BETWEEN) if piece.sentence == 1 else 0
        start, end = (at, at) if piece.sentence is None else (piece.start + shift, piece.end + shift)
        tokens.append(token_at(tokenizer.vocabulary, piece.id, whole, start, end))
        at = max(at, end)
    return within(Encoding(whole, tuple(tokens), segments=tuple(piece.segment for piece in pieces)), max_tokens)


@dataclass(frozen=True)
class Cut:
    """One way to cut the text: how many tokens, and how many of them the vocabulary does not have.

    `parts` are the tokens of each row, with one sign for a space: before the text, of each of its words, after it.
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
    rows = list(re.finditer(r"\S+", text))
    starts = [row.start() for row in rows]
    cuts = []
    for words, tokens in ((each.vocabulary, each.encode(text).tokens) for each in tokenizers):
        parts: list[list[Token]] = [[] for _ in range(len(rows) + 2)]
        for token in tokens:
            row = bisect_right(starts, token.end - (token.start < token.end))
            if token.start == token.end and token.end in (0, len(text)):
                row = len(rows) + 1 if token.end else 0
            parts[row].append(token if token.unknown else replace(token, text=words.label(token.text)))
        unknown = sum(token.unknown for token in tokens)
        cuts.append(Cut(words.name, len(tokens), unknown, tuple(map(tuple, parts))))
    return Cuts(("", *(row[0] for row in rows), ""), tuple(cuts))


def joined(tokens: Sequence[Token]) -> str:
    """Tokens beside each other, an unknown one with a question mark."""
    return " ".join(map(shown, tokens))


def shown(token: Token) -> str:
    """A token as it is written between others, an unknown one with a question mark."""
    return f"{visible(token.text)}?" if token.unknown else visible(token.text)
