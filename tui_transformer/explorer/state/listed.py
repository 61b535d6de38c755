"""The order in which a vocabulary is listed: the words of the sentence first."""

from __future__ import annotations

from collections.abc import Sequence


def entry_of(first: Sequence[int], index: int) -> int:
    """The ID of a line of the vocabulary: some IDs come first, each once, then the others in order."""
    if index < len(first):
        return first[index]
    token = index - len(first)
    for used in sorted(first):
        token += used <= token
    return token
