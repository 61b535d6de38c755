"""Vocabularies made from a text: its most frequent words or characters, or byte pairs that are learned from it."""

from __future__ import annotations

import heapq
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby, islice, takewhile
from operator import itemgetter
from typing import IO, Self

from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.encoding import without_surrogates
from tui_transformer.text.files import several_lines
from tui_transformer.text.vocabulary import MAX_ENTRIES, MAX_ENTRY_LENGTH, Kind, Vocabulary
from tui_transformer.text.vocabulary_rules import RULE, SPECIALS, Specials, WordRule
from tui_transformer.text.word_tokenizers import word_pattern, words_in

MOST_IN_MEMORY = 1_000_000
"""Distinct words in memory (about 150 MB); more of them go to sorted temporary files, which are merged at the end."""
DEFAULT_SIZE = 10_000
NAME = "built"
BYTES = 256
TOGETHER = 1 << 20
"""Characters that are looked through at once."""
LONGEST_WORD = 1000
"""Characters without a space, or spaces, that are looked at together: learning from a word takes its length squared."""

WAIT = 0.1
"""Seconds between two looks whether the work is done."""

_LONG = re.compile(rf"\S{{{LONGEST_WORD}}}|\s{{{LONGEST_WORD}}}")


@dataclass(frozen=True)
class Built:
    """A vocabulary made from a text: the special words, then the entries from the most frequent on.

    `counts` says how often each entry came; None where entries are parts of each other (byte pairs). The text had
    `tokens` words or characters, of which so many were `distinct`.
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
) -> Built:
    """The most frequent words of a text, cut and written as `WordTokenizer` does; memory is bounded.

    Args:
        lines: The text; a word goes over no end of a line.
        size: Entries at most, the four special words among them.
        min_frequency: How often a word must come.
        specials: What the special words are called; they have the IDs 0 to 3.
        rule: What a word is, and whether capitals are kept.

    Raises:
        InputError: The text has no words, or a number cannot be used.
    """
    words_at_most = _room(size, min_frequency, len(specials.names))
    special: Counter[str] = Counter()
    too_long = 0
    with WordCounts(MOST_IN_MEMORY) as counts:
        for text in map(without_surrogates, several_lines(lines, TOGETHER, "\n")):
            if any(name in text for name in specials.names):
                matches = list(word_pattern(specials.names, text, rule).finditer(text))
                special.update(match[0] for match in matches if match.lastgroup == "special")
                written = Counter(match[0] for match in matches if match.lastgroup != "special")
            else:
                written = Counter(words_in(text, rule))
            words: Counter[str] = Counter()
            for word, count in written.items():
                words[rule.form(word)] += count
            too_long += sum(words.pop(word) for word in [*words] if len(word) > MAX_ENTRY_LENGTH)
            counts.add(words)
        counted = counts.most_common(words_at_most, min_frequency)
    _check_counts(counted.distinct, len(counted.words), min_frequency, "word")
    return _built("words", specials, special, replace(counted, tokens=counted.tokens + too_long), rule)


def build_characters(
    lines: Iterable[str], size: int = DEFAULT_SIZE, min_frequency: int = 1, specials: Specials = SPECIALS
) -> Built:
    """The most frequent characters of a text, line breaks among them; the arguments are those of `build_words`."""
    room = _room(size, min_frequency, len(specials.names))
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(without_surrogates(line))
    frequent = ((character, count) for character, count in counts.most_common() if count >= min_frequency)
    counted = Counted(tuple(islice(frequent, room)), counts.total(), len(counts))
    _check_counts(counted.distinct, len(counted.words), min_frequency, "character")
    return _built("characters", specials, {}, counted)


def build_bpe(
    lines: Iterable[str], size: int = DEFAULT_SIZE, min_frequency: int = 1, specials: Specials = SPECIALS
) -> Built:
    """Byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019), learned by the library `tokenizers`.

    The most frequent pair is merged until there are so many entries, of which 256 are single bytes, so every text can
    be written; the distinct words of the text are in memory meanwhile. The arguments are those of `build_words`;
    `min_frequency` is that of a pair.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    from tui_transformer.text.tokenizer_files import built_vocabulary

    _room(size, min_frequency, len(specials.names) + BYTES)
    rust = Tokenizer(models.BPE(unk_token=specials.unknown))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=list(specials.names),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    characters = 0

    def parts() -> Iterator[str]:
        nonlocal characters
        for line in map(without_surrogates, lines):
            characters += len(line)
            start = 0
            for match in _LONG.finditer(line) if len(line) > LONGEST_WORD else ():
                yield line[start : match.end()]
                start = match.end()
            yield line[start:]

    interruptible(lambda wanted: rust.train_from_iterator(takewhile(wanted, parts()), trainer))
    _check_counts(characters, characters, min_frequency, "character")
    vocabulary = built_vocabulary(rust, NAME, specials)
    return Built(vocabulary, None, characters, vocabulary.size)


BUILDERS: Mapping[str, Callable[[Iterable[str], int, int, Specials], Built]] = {
    "word": build_words,
    "character": build_characters,
    "bpe": build_bpe,
}


def _room(size: int, min_frequency: int, fixed: int) -> int:
    if not fixed < size <= MAX_ENTRIES:
        raise UsageError(f"size {size} is not {fixed + 1} to {MAX_ENTRIES:,}: {fixed} entries are there in any case")
    if min_frequency < 1:
        raise UsageError(f"min_frequency {min_frequency} is not a whole number from 1")
    return size - fixed


def _check_counts(distinct: int, frequent: int, min_frequency: int, what: str) -> None:
    if not distinct:
        raise InputError(f"the text has no {what}s: there is nothing to build a vocabulary from")
    if not frequent:
        raise InputError(f"no {what} of the text comes {min_frequency:,} times: use a smaller minimum")


def _built(
    kind: Kind, specials: Specials, special: Mapping[str, int], counted: Counted, rule: WordRule = RULE
) -> Built:
    words = (*specials.names, *(word for word, _ in counted.words))
    counts = (*(special.get(name, 0) for name in specials.names), *(count for _, count in counted.words))
    vocabulary = Vocabulary(NAME, words, 0, kind, None, specials=specials, rule=rule)
    return Built(vocabulary, counts, counted.tokens + sum(special.values()), counted.distinct)


Row = tuple[str, int, int]
"""A word, how often it comes, and how many distinct words came before it."""


@dataclass(frozen=True)
class Counted:
    """The most frequent words with their counts, and how many words there were in all."""

    words: tuple[tuple[str, int], ...]
    tokens: int
    distinct: int


@dataclass
class WordCounts:
    """Counts words without tabs and line breaks, in a `with`, at whose end the temporary files are gone.

    At most so many distinct words are in memory; `runs` are sorted tables of words and counts in files.
    """

    most: int
    _table: Counter[str] = field(default_factory=Counter, init=False)
    runs: list[IO[str]] = field(default_factory=list, init=False)
    _files: ExitStack = field(default_factory=ExitStack, init=False)
    _before: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, words: Mapping[str, int]) -> None:
        """Count these words, each as often as it came.

        Raises:
            InputError: The temporary files cannot be written.
        """
        self._table.update(words)
        if len(self._table) <= self.most:
            return
        try:
            run = self._files.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n"))  # noqa: SIM115
            run.writelines(f"{word}\t{count}\t{place}\n" for word, count, place in self._sorted_table())
            run.seek(0)
        except OSError as error:
            raise InputError(f"{tempfile.gettempdir()}: counts cannot be written there: {error.strerror}") from error
        self.runs.append(run)
        self._before += len(self._table)
        self._table.clear()

    def _sorted_table(self) -> list[Row]:
        rows = ((word, count, self._before + place) for place, (word, count) in enumerate(self._table.items()))
        return sorted(rows)

    def most_common(self, size: int, min_frequency: int = 1) -> Counted:
        """The most frequent words that come so often at least; of equally frequent ones, those that came first."""
        tokens = distinct = 0

        def frequent() -> Iterator[tuple[int, int, str]]:
            nonlocal tokens, distinct
            rows = heapq.merge(*map(_rows, self.runs), self._sorted_table())
            for word, same in groupby(rows, itemgetter(0)):
                counts, places = zip(*(row[1:] for row in same), strict=True)
                tokens, distinct = tokens + sum(counts), distinct + 1
                if sum(counts) >= min_frequency:
                    yield -sum(counts), min(places), word

        best = heapq.nsmallest(size, frequent())
        return Counted(tuple((word, -less) for less, _, word in best), tokens, distinct)


def _rows(run: IO[str]) -> Iterator[Row]:
    for line in run:
        word, count, place = line.rstrip("\n").split("\t")
        yield word, int(count), int(place)


def interruptible(work: Callable[[Callable[[object], bool]], None]) -> None:
    """Do work on another thread: the library hears no signals, this thread does.

    `work` is given a function that says whether more of its input is wanted.
    """
    ended, failed = threading.Event(), list[Exception]()

    def run() -> None:
        try:
            work(lambda _: not ended.is_set())
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(WAIT)
    finally:
        ended.set()
        thread.join(WAIT)
    if failed:
        raise failed[0]
