"""A sentence to begin with, for every vocabulary."""

from __future__ import annotations

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
