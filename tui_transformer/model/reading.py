"""The input of a model, as a user gave it."""

from __future__ import annotations

from dataclasses import dataclass

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Reading:
    """A sentence, or one of several, and what a decoder beside an encoder has written; None for what was not given.

    Attributes:
        text: The sentence.
        ids: Its token IDs instead.
        pair: A second sentence beside the text, for a model that reads pairs.
        mask: 1 for every token of the sentence that is read and 0 for padding.
        decoder_text: What the decoder has written so far, without its start token.
        decoder_ids: Its token IDs instead, start token included.
        batch: All sentences, where there are several: each its text, or its token IDs.
        item: Which of them the text or the IDs are.
    """

    text: str | None = None
    ids: Ids | None = None
    pair: str | None = None
    mask: Ids | None = None
    decoder_text: str | None = None
    decoder_ids: Ids | None = None
    batch: tuple[str | Ids, ...] = ()
    item: int = 0
