"""Other sentences that a model can read: a counterpart to take values from, and examples to try something on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from random import Random

from tui_transformer.errors import InputError
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.recipes import recipe_of
from tui_transformer.session.session import Session
from tui_transformer.text.known_words import COUNTERPARTS, SENTENCES
from tui_transformer.text.vocabulary import Vocabulary

MOST = 32
"""Examples that something is tried on."""

WORDS = 40
"""Words of a vocabulary that are put in the place of one."""

SEED = 7

Pair = tuple[str, str]
"""A sentence, and what a decoder beside an encoder has written; "" for nothing."""


def counterpart(session: Session) -> str:
    """A sentence of as many tokens: the one that is named beside this one, or this one with one word exchanged.

    "" where none is found.
    """
    text = session.sentence
    if not text or not session.model.config.vocab_size:
        return ""
    turned = {other: named for named, other in COUNTERPARTS.items()}
    named = (each for each in (COUNTERPARTS.get(text), turned.get(text)) if each is not None)
    count = _tokens(session, text)
    others = islice(chain(named, exchanges(session)), 200)  # exchanges of a word take long
    return next((each for each in others if each != text and _tokens(session, each) == count), "")


def examples(session: Session) -> Iterator[Pair]:
    """Other sentences, the same ones each time: of the text that the model was trained on, or else that it can read."""
    given, seen = recipe_of(session.model.folder), {session.sentence}
    pairs = _trained(given.name) if given is not None else ((text, "") for text in _readable(session))
    for text, target in pairs:
        if text not in seen and len(seen) <= MOST:
            seen.add(text)
            yield text, target if session.model.has_decoder else ""


def exchanges(session: Session) -> Iterator[str]:
    """The sentence with one word exchanged for another that is known; words that occur once, and long ones, first."""
    model, parts = session.model, session.sentence.split(" ")
    for at in sorted(range(len(parts)), key=lambda place: (parts.count(parts[place]), -len(parts[place]))):
        for word in _instead(parts[at], model.vocabulary, model.config.vocab_size):
            if word.casefold() != parts[at].casefold():
                yield " ".join((*parts[:at], word, *parts[at + 1 :]))


def _instead(word: str, vocabulary: Vocabulary | None, count: int) -> Iterable[str]:
    """Words that may stand in the place of one: of the vocabulary, or other characters of the same kind."""
    if vocabulary is None:
        return (str((int(word) + by) % count) for by in (1, 2, 5) if word.isdigit())
    random = Random(SEED)  # noqa: S311 - the same words each time, nothing secret
    if vocabulary.kind == "characters":
        letters = [each for each in vocabulary.words if len(each) == 1]
        return (
            word[:at] + other + word[at + 1 :]
            for at in reversed(range(len(word)))
            for other in letters
            if other != word[at] and _kind(other) == _kind(word[at])
        )
    kind = _kind(word)
    if vocabulary.kind == "words":
        known = [each for at, each in enumerate(vocabulary.words) if at not in vocabulary.special_ids]
    else:
        known = list(dict.fromkeys(part.strip(".,!?") for text in SENTENCES.values() for part in text.split()))
    alike = [each for each in known if _kind(each) == kind]
    return random.sample(alike, min(len(alike), WORDS))


def _kind(word: str) -> tuple[bool, bool, bool]:
    return word.isalpha(), word.isdigit(), word[:1].isupper()


def _trained(name: str) -> Iterator[Pair]:
    """Lines of a text that a model is trained on, as far as it has to go on by itself."""
    for line in lines_of(name, 2 * MOST, SEED):
        text, _, answer = line.partition("\t")
        if answer:
            yield text, answer[:5]  # what a decoder beside an encoder is given: `2021-`
        else:
            words = text.split(" ")
            yield " ".join(words[: max(len(words) * 3 // 4, 1)] if name == "copy" else words[:SAID]), ""


SAID = 16
"""Words of a story that it begins with."""


def _readable(session: Session) -> Iterator[str]:
    """Sentences that the vocabulary knows, the words in other orders, and with one word exchanged."""
    model, text = session.model, session.sentence
    if model.vocabulary is not None:
        yield from (each for each in SENTENCES.values() if model.knows(each))
    words, random = text.split(" "), Random(SEED)  # noqa: S311 - the same orders each time
    yield " ".join(reversed(words))
    for _ in range(MOST // 4):
        yield " ".join(random.sample(words, len(words)))
    yield from exchanges(session)


def tried(session: Session, pair: Pair) -> Session | None:
    """The session on another sentence, in its place in a batch; None where the model cannot read it."""
    text, target = pair
    try:
        other = session.with_text(text)
        return other.with_decoder_text(target) if target else other
    except InputError:
        return None


def _tokens(session: Session, text: str) -> int:
    """How many tokens a text has before anything is put around it; 0 where it cannot be read."""
    model = session.model
    if model.vocabulary is None:
        return len(text.replace(",", " ").split())
    try:
        return len(model.encode(text, cut=session.cut, pair=session.pair).tokens)
    except InputError:
        return 0
