"""Classify: an encoder reads a line and says what it is, as the prediction at its first token.

The labels are words of the vocabulary, so the model is an ordinary one: `output.probabilities` at the first token is
the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.errors import InputError
from tui_transformer.learning.batches import Row
from tui_transformer.learning.tasks.base import Lines, Reader, Task, id_of, pairs, tokenizer_ids
from tui_transformer.text.vocabulary_rules import normal_form

WHAT = "the line, a tab and its label"


def texts(lines: Lines) -> Iterator[str]:
    """The lines without their labels."""
    return (text for text, _ in pairs(lines, WHAT))


def labels(lines: Lines) -> tuple[str, ...]:
    """The different labels, in the order of their first appearance.

    Raises:
        InputError: One is not a single word, or there is only one.
    """
    different = tuple(dict.fromkeys(normal_form(label.strip()) for _, label in pairs(lines, WHAT)))
    for label in different:
        if len(label.split()) > 1:
            raise InputError(f"label {label[:60]!r} has spaces: write it as one word, as in question_or_order")
    if len(different) < 2:
        raise InputError(
            f"every line has the label {different[0]!r}: there is nothing to tell apart" if different else "empty"
        )
    return different


def rows(lines: Lines, reader: Reader) -> Sequence[Row]:
    """A line with its label as the target of its first token; what is longer is cut."""
    ids, words, made = tokenizer_ids(reader.tokenizer), reader.vocabulary, []
    for text, label in pairs(lines, WHAT):
        tokens = np.array(ids(text)[: reader.length], dtype=np.int64)
        targets = np.full(tokens.shape, NOT_COUNTED)
        if tokens.size:
            targets[0] = id_of(words, normal_form(label.strip()))
            made.append(Row(tokens, targets))
    return made


TASK = Task("classify", "encoder", "words", rows, text=texts, extra_words=labels)
