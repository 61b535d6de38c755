"""Pairs: the encoder reads the text before the tab, the decoder writes the one after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tui_transformer.learning.batches import Row
from tui_transformer.learning.tasks.base import Lines, Reader, Task, needed, pairs, tokenizer_ids
from tui_transformer.text.dispatch import target_tokenizer

WHAT = "source, tab, target"


def texts(lines: Lines) -> Iterator[str]:
    """Sources and targets: both sequences have one vocabulary."""
    return (text for pair in pairs(lines, WHAT) for text in pair)


def rows(lines: Lines, reader: Reader) -> Sequence[Row]:
    """The decoder reads the begin word and the target, and predicts the target and the end word; longer is cut."""
    target = target_tokenizer(reader.tokenizer)
    words, ids, target_ids, made = target.vocabulary, tokenizer_ids(reader.tokenizer), tokenizer_ids(target), []
    first = words.begin_id if reader.start_id is None else reader.start_id
    begin, end = needed(words, first, words.specials.begin), needed(words, words.end_id, words.specials.end)
    for source, translation in pairs(lines, WHAT):
        read, written = ids(source)[: reader.length], target_ids(translation)[: reader.length - 1]
        if read and written:
            both = np.array([begin, *written, end], dtype=np.int64)
            made.append(Row(np.array(read, dtype=np.int64), both[1:], both[:-1]))
    return made


TASK = Task("pairs", "encoder-decoder", "words", rows, text=texts)
