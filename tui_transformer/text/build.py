"""Vocabularies from text: of its most frequent words, of its characters, or of byte pairs.

Builds of the same text are the same everywhere: what is equally frequent comes in the order of its first appearance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from tui_transformer.errors import InputError, UsageError
from tui_transformer.text.counting import MOST_IN_MEMORY, Counted, WordCounts
from tui_transformer.text.encoding import without_surrogates
from tui_transformer.text.several_lines import several_lines
from tui_transformer.text.specials import SPECIALS, Specials
from tui_transformer.text.vocabulary import MAX_ENTRIES, MAX_ENTRY_LENGTH, Kind, Vocabulary
from tui_transformer.text.word_rule import RULE, WordRule
from tui_transformer.text.words import word_pattern, words_in

DEFAULT_SIZE = 10_000
NAME = "built"
BYTES = 256
_TOGETHER = 1 << 20
"""Characters that are looked through at once."""


@dataclass(frozen=True)
class Built:
    """A vocabulary made from a text.

    Attributes:
        vocabulary: The special words, then the entries from the most frequent on.
        counts: How often each entry came, in order of ID; None where entries are parts of each other (byte pairs).
        tokens: The words or characters of the text.
        distinct: How many different ones there were.
    """

    vocabulary: Vocabulary
    counts: tuple[int, ...] | None
    tokens: int
    distinct: int

    @property
    def coverage(self) -> float:
        """The share of the text's words or characters that the vocabulary has; bytes can write every text."""
        return 1.0 if self.counts is None or not self.tokens else sum(self.counts) / self.tokens


def build_words(
    lines: Iterable[str],
    size: int = DEFAULT_SIZE,
    min_frequency: int = 1,
    specials: Specials = SPECIALS,
    rule: WordRule = RULE,
) -> Vocabulary:
    """The most frequent words of a text, cut and written as `WordTokenizer` does.

    Args:
        lines: The text; a word goes over no end of a line.
        size: Entries at most, the four special words among them.
        min_frequency: How often a word must come.
        specials: What the special words are called; they have the IDs 0 to 3.
        rule: What a word is, and whether capitals are kept.

    Raises:
        InputError: The text has no words, or a number cannot be used.
    """
    return words_of(lines, size, min_frequency, specials, rule).vocabulary


def build_characters(
    lines: Iterable[str], size: int = DEFAULT_SIZE, min_frequency: int = 1, specials: Specials = SPECIALS
) -> Vocabulary:
    """The most frequent characters of a text, line breaks among them; the arguments are those of `build_words`."""
    return characters_of(lines, size, min_frequency, specials).vocabulary


def build_bpe(
    lines: Iterable[str], size: int = DEFAULT_SIZE, min_frequency: int = 1, specials: Specials = SPECIALS
) -> Vocabulary:
    """Byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), learned by the library `tokenizers`.

    The arguments are those of `build_words`; `min_frequency` is that of a pair, and 256 entries are single bytes.
    """
    return byte_pairs_of(lines, size, min_frequency, specials).vocabulary


def words_of(
    lines: Iterable[str],
    size: int,
    min_frequency: int,
    specials: Specials,
    rule: WordRule = RULE,
    *,
    together: int = _TOGETHER,
    room: int = MOST_IN_MEMORY,
) -> Built:
    """As `build_words`, with counts. Memory is bounded.

    Args:
        lines: As of `build_words`, with the rest.
        size: Of the vocabulary.
        min_frequency: Of a word.
        specials: The special words.
        rule: What a word is.
        together: Characters that are split into words at a time.
        room: Words that are counted in memory; more go to a file.
    """
    words_at_most = _room(size, min_frequency, len(specials.names))
    special: Counter[str] = Counter()
    too_long = 0
    with WordCounts(room) as counts:
        for text in several_lines(lines, together, "\n"):
            words = _words(without_surrogates(text), specials, special, rule)
            too_long += sum(words.pop(word) for word in [*words] if len(word) > MAX_ENTRY_LENGTH)
            counts.add(words)
        counted = counts.most_common(words_at_most, min_frequency)
    _check_any(counted.distinct, "words")
    _check_frequent(len(counted.words), min_frequency, "word")
    return _built("words", specials, special, replace(counted, tokens=counted.tokens + too_long), rule)


def _words(text: str, specials: Specials, special: Counter[str], rule: WordRule) -> Counter[str]:
    """The words of a text in their normal form; its special words are counted apart."""
    if any(name in text for name in specials.names):
        matches = list(word_pattern(specials.names, text, rule).finditer(text))
        special.update(match[0] for match in matches if match.lastgroup == "special")
        written = Counter(match[0] for match in matches if match.lastgroup != "special")
    else:
        written = Counter(words_in(text, rule))
    normal: Counter[str] = Counter()
    for word, count in written.items():
        normal[rule.form(word)] += count
    return normal


def characters_of(lines: Iterable[str], size: int, min_frequency: int, specials: Specials) -> Built:
    """As `build_characters`, with counts."""
    room = _room(size, min_frequency, len(specials.names))
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(without_surrogates(line))
    _check_any(len(counts), "characters")
    frequent = ((character, count) for character, count in counts.most_common() if count >= min_frequency)
    counted = Counted(tuple(islice(frequent, room)), counts.total(), len(counts))
    _check_frequent(len(counted.words), min_frequency, "character")
    return _built("characters", specials, {}, counted)


def _built(
    kind: Kind, specials: Specials, special: Mapping[str, int], counted: Counted, rule: WordRule = RULE
) -> Built:
    words = (*specials.names, *(word for word, _ in counted.words))
    counts = (*(special.get(name, 0) for name in specials.names), *(count for _, count in counted.words))
    vocabulary = Vocabulary(NAME, words, 0, kind, None, specials=specials, rule=rule)
    return Built(vocabulary, counts, counted.tokens + sum(special.values()), counted.distinct)


def byte_pairs_of(lines: Iterable[str], size: int, min_frequency: int, specials: Specials) -> Built:
    """As `build_bpe`; the distinct words of the text are in memory while it is learned."""
    from tui_transformer.text.byte_pairs import learn

    _room(size, min_frequency, len(specials.names) + BYTES)
    characters = 0

    def read() -> Iterator[str]:
        nonlocal characters
        for line in lines:
            characters += len(line)
            yield without_surrogates(line)

    vocabulary = learn(read(), size, min_frequency, specials)
    _check_any(characters, "characters")
    return Built(vocabulary, None, characters, vocabulary.size)


def _room(size: int, min_frequency: int, fixed: int) -> int:
    """The entries that are left for the text."""
    if not fixed < size <= MAX_ENTRIES:
        raise UsageError(f"size {size} is not {fixed + 1} to {MAX_ENTRIES:,}: {fixed} entries are there in any case")
    if min_frequency < 1:
        raise UsageError(f"min_frequency {min_frequency} is not a whole number from 1")
    return size - fixed


def _check_any(count: int, what: str) -> None:
    if not count:
        raise InputError(f"the text has no {what}: there is nothing to build a vocabulary from")


def _check_frequent(count: int, min_frequency: int, what: str) -> None:
    if not count:
        raise InputError(f"no {what} of the text comes {min_frequency:,} times: use a smaller minimum")


BUILDERS: Mapping[str, Callable[[Iterable[str], int, int, Specials], Built]] = {
    "word": words_of,
    "character": characters_of,
    "bpe": byte_pairs_of,
}
