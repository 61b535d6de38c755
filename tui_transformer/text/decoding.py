"""The text that token IDs stand for, without what stands around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.vocabulary import Vocabulary


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
