"""What a vocabulary knows: a sentence of its words to begin with, and the unknown words of texts, counted."""

from __future__ import annotations

from collections.abc import Sequence

from tui_transformer.records import dataclass, field
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Encoding
from tui_transformer.text.vocabulary import Vocabulary

SENTENCES = {
    "waves": "The waves crashed forcefully against the shore!",
    "nation": "The strong nation recycles its huge trade surplus to America!",
    "dog": "a dog bites a man",
    "english": "the old man and the sea are here.",
    "deutsch": "der Hund und das Kind sind im Haus.",
    "question": "where did the old sailor hide the map ?",
    "dates": "the 3rd of May 2021",
    "copy": "q f a s m k q f a s m",
    "story": "Once there was a small girl called Mira, who lived",
}
COUNTERPARTS = {
    "where did the old sailor hide the map ?": "the old sailor did not hide the map .",
    "the 3rd of May 2021": "the 3rd of Oct 2021",
    "q f a s m k q f a s m": "q f a s m e q f a s m",
    "Once there was a small girl called Mira, who lived": "Once there was a small girl called Mira, who found",
}
"""Sentences of as many tokens beside those: what the one has in the place of the other is what makes the difference."""
WORDS = 6
WRITTEN = {"encoder-decoder": "the waves crashed", "dates": "2021-"}
"""Beginnings of the answer that the decoder beside an encoder has written to the sentence; of other models, nothing."""


def sample_sentence(vocabulary: Vocabulary, model: str = "") -> str:
    """A sentence that the vocabulary knows: the model's, its own, or its first ordinary words; pieces can write any."""
    for name in (model, vocabulary.name):
        if name in SENTENCES:
            return SENTENCES[name]
    if vocabulary.kind in ("pieces", "sentencepiece"):
        return SENTENCES["waves"]
    special = vocabulary.special_ids
    whole = (word for i, word in enumerate(vocabulary.words) if i not in special and word.isalnum())
    words = [word for word, _ in zip(whole, range(WORDS), strict=False)]
    return " ".join(words) or vocabulary.words[-1]


def sample_target(vocabulary: Vocabulary, model: str) -> str:
    """The text that the decoder has written beside the sample sentence; nothing in words that it has not."""
    text = WRITTEN.get(model, "")
    known = vocabulary.kind != "words" or all(word in vocabulary.ids for word in text.split())
    return text if known else ""


FIRST, LONGEST = 5, 20
"""Number of words that are named, and of characters of each."""


@dataclass(eq=False)
class Unknown:
    """The unknown words of any number of texts: how many, among how many, and the first different ones."""

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

    def describe(self, vocabulary: Vocabulary | None, what: str, model: str) -> str | None:
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
    return named(list(dict.fromkeys(token.text for token in encoding.tokens if token.unknown)))


def named(words: Sequence[str]) -> str:
    """The first of some words, with commas between them."""
    return ", ".join(visible(word[:LONGEST]) for word in words[:FIRST]) + (", …" if len(words) > FIRST else "")
