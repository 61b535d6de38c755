"""Base of the tasks of the next word and the next character: stretches of a text, each token predicting the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.learning.batches import Row
from tui_transformer.learning.tasks.base import Lines, Reader, Windows, stream


def rows(lines: Lines, reader: Reader) -> Sequence[Row]:
    """Stretches of the text between its begin and end words, where the vocabulary has these."""
    words = reader.vocabulary
    ends = [np.array([] if end is None else [end], dtype=np.int32) for end in (words.begin_id, words.end_id)]
    return Windows(
        np.concatenate([ends[0], stream(lines, reader.tokenizer), ends[1]]), reader.length, _shifted, shift=1
    )


def _shifted(tokens: Host) -> Row:
    return Row(tokens[:-1], tokens[1:])
