"""What the tasks of the next word and the next character share: stretches of a text, each token predicting the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.learning.batches import Row
from tui_transformer.learning.tasks.base import Lines, Windows, stream
from tui_transformer.text.tokenizer import Tokenizer


def rows(lines: Lines, tokenizer: Tokenizer, length: int) -> Sequence[Row]:
    """Stretches of the text between its begin and end words, where the vocabulary has these."""
    words = tokenizer.vocabulary
    ends = [np.array([] if found is None else [found], dtype=np.int32) for found in (words.begin_id, words.end_id)]
    return Windows(np.concatenate([ends[0], stream(lines, tokenizer), ends[1]]), length, _shifted, shift=1)


def _shifted(tokens: Host) -> Row:
    """The target of a token is the next one."""
    return Row(tokens[:-1], tokens[1:])
