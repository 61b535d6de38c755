"""The words of texts that a vocabulary does not know, counted and said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Encoding
from tui_transformer.text.vocabulary import Vocabulary

FIRST, LONGEST = 5, 20
"""How many of the words are named, and how many characters of each."""


@dataclass(eq=False)
class Unknown:
    """The unknown words of any number of texts.

    Attributes:
        count: How many there are.
        of: Among how many words.
        words: The first different ones, no more than are named and one.
    """

    count: int = 0
    of: int = 0
    words: dict[str, None] = field(default_factory=dict)

    def add(self, encoding: Encoding) -> Encoding:
        """Count those of one text; the text itself."""
        self.count += unknown_count(encoding)
        self.of += sum(not token.special for token in encoding.tokens)
        for token in encoding.tokens:
            if token.unknown and len(self.words) <= FIRST:
                self.words[token.text] = None
        return encoding

    def said(self, vocabulary: Vocabulary | None, what: str, model: str) -> str | None:
        """One line that counts and names them, of `what` that a model reads; None where all words are known."""
        if vocabulary is None or not self.count:
            return None
        noun = "characters" if vocabulary.kind == "characters" else "words"
        counted = f"{self.count:,} of {self.of:,} {noun} of {what} {'is' if self.count == 1 else 'are'}"
        return f"{counted} not in the vocabulary of {visible(model)}: {named(list(self.words))}"


def unknown_count(encoding: Encoding) -> int:
    """Tokens that stand for what the vocabulary does not know."""
    return sum(token.unknown for token in encoding.tokens)


def unknown_named(encoding: Encoding) -> str:
    """The first of the unknown words, with commas between them; "" where all are known."""
    unknown = Unknown()
    unknown.add(encoding)
    return named(list(unknown.words))


def named(words: Sequence[str]) -> str:
    """The first of some words, with commas between them."""
    return ", ".join(visible(word[:LONGEST]) for word in words[:FIRST]) + (", …" if len(words) > FIRST else "")
