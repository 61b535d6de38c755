"""Two sentences in one sequence, told apart by their segments (token types), as BERT reads them."""

from __future__ import annotations

from collections.abc import Sequence

from tui_transformer.errors import InputError
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Encoding, Pairs, Token, Tokenizer, too_many

BETWEEN = " "
"""Separators of two sentences where they are written as one text."""


def encode_pair(tokenizer: Tokenizer, first: str, second: str, max_tokens: int) -> Encoding:
    """The tokens of two sentences, with the segment of each; the text is both with a space between.

    Raises:
        InputError: The tokenizer has no pairs, or there are too many tokens.
    """
    pieces = tokenizer.pair(first, second) if isinstance(tokenizer, Pairs) else ()
    sentences = [piece.sentence for piece in pieces]
    if None not in sentences[_last(sentences, 0) : _first(sentences, 1)]:
        name = visible(tokenizer.vocabulary.name)
        raise InputError(f"{name} puts nothing between two sentences: give one, or a model that reads pairs, as BERT")
    if len(pieces) > max_tokens:
        raise too_many(len(pieces), max_tokens)
    whole, words = f"{first}{BETWEEN}{second}", tokenizer.vocabulary
    tokens = []
    at = 0
    for piece in pieces:
        shift = len(first) + len(BETWEEN) if piece.sentence == 1 else 0
        start, end = (at, at) if piece.sentence is None else (piece.start + shift, piece.end + shift)
        written = whole[start:end]
        unknown = piece.id == words.unknown_id and written not in ("", words.words[piece.id])
        text = written if unknown else words.words[piece.id]
        tokens.append(Token(piece.id, text, start, end, unknown, not unknown and piece.id in words.special_ids))
        at = max(at, end)
    return Encoding(whole, tuple(tokens), segments=tuple(piece.segment for piece in pieces))


def _last(sentences: Sequence[int | None], which: int) -> int:
    return max((i for i, sentence in enumerate(sentences) if sentence == which), default=0)


def _first(sentences: Sequence[int | None], which: int) -> int:
    return next((i for i, sentence in enumerate(sentences) if sentence == which), len(sentences))
