"""Masked word: an encoder reads a text with some words hidden, and says which they were (Devlin et al. 2019, §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.learning.batches import Row
from tui_transformer.learning.tasks.base import Lines, Reader, Task, Windows, id_of, stream
from tui_transformer.text.vocabulary import Vocabulary

MASK = "[MASK]"
CHOSEN, HIDDEN, REPLACED = 0.15, 0.8, 0.1
"""Of the words 15 % are predicted; of these 80 % are hidden, 10 % are another word, 10 % stay as they are."""


def rows(lines: Lines, reader: Reader) -> Sequence[Row]:
    """Stretches of the text; what is hidden is drawn anew each time."""
    id_of(reader.vocabulary, MASK)
    return Windows(stream(lines, reader.tokenizer), reader.length, lambda tokens: Row(tokens, tokens))


def draw(row: Row, random: np.random.Generator, vocabulary: Vocabulary) -> Row:
    """Hide words at random, one at least."""
    special, ordinary = _kinds(vocabulary)
    chosen = _chosen(row.ids, special, random)
    fate = random.random(row.ids.size)
    ids = np.where(chosen & (fate < HIDDEN), vocabulary.ids[MASK], row.ids)
    replaced = chosen & (fate >= HIDDEN) & (fate < HIDDEN + REPLACED)
    ids = np.where(replaced, random.choice(ordinary, row.ids.size), ids)
    return Row(ids, np.where(chosen, row.ids, NOT_COUNTED))


@lru_cache(maxsize=4)
def _kinds(vocabulary: Vocabulary) -> tuple[Host, Host]:
    special = np.array(sorted(vocabulary.special_ids))
    return special, np.setdiff1d(np.arange(vocabulary.size), special)


def _chosen(ids: Host, special: Host, random: np.random.Generator) -> Host:
    """Which positions are predicted: 15 % of the ordinary words, and one where that would be none."""
    chance = np.where(np.isin(ids, special), 2.0, random.random(ids.size))
    chosen = chance < CHOSEN
    chosen[chance.argmin()] = True
    return np.asarray(chosen)


TASK = Task("masked-word", "encoder", "words", rows, extra_words=lambda _: (MASK,), draw=draw, whole=True)
