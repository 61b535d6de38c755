"""The words of a text that a vocabulary does not know, counted and said."""

from __future__ import annotations

from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Encoding
from tui_transformer.text.vocabulary import Vocabulary

FIRST, LONGEST = 5, 20
"""How many of the words are named, and how many characters of each."""


def unknown_count(encoding: Encoding) -> int:
    """Tokens that stand for what the vocabulary does not know."""
    return sum(token.unknown for token in encoding.tokens)


def unknown_said(encoding: Encoding, vocabulary: Vocabulary | None, what: str, model: str) -> str | None:
    """One line that counts and names the unknown words of `what` that a model reads; None where all are known."""
    count = unknown_count(encoding)
    if vocabulary is None or not count:
        return None
    named = unknown_named(encoding)
    noun = "characters" if vocabulary.kind == "characters" else "words"
    whole = sum(not token.special for token in encoding.tokens)
    counted = f"{count:,} of {whole:,} {noun} of {what} {'is' if count == 1 else 'are'}"
    return f"{counted} not in the vocabulary of {visible(model)}: {named}"


def unknown_named(encoding: Encoding) -> str:
    """The first of the unknown words, with commas between them; "" where all are known."""
    words = dict.fromkeys(token.text for token in encoding.tokens if token.unknown)
    named = ", ".join(visible(word[:LONGEST]) for word, _ in zip(words, range(FIRST), strict=False))
    return named + (", …" if len(words) > FIRST else "")
