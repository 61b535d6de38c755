"""The members of every task, and what several of them do with text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.learning.batches import Row
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import MAX_CHARACTERS, Tokenizer
from tui_transformer.text.files import several_lines
from tui_transformer.text.vocabulary import Vocabulary

Lines = Sequence[str]
"""The lines of a file, with their ends; a very long one comes in parts."""

Words = Callable[[Lines], Iterable[str]]
Draw = Callable[[Row, np.random.Generator, Vocabulary], Row]
ENCODED = 1 << 16
"""Characters that are split into tokens at a time."""


def nothing(lines: Lines) -> tuple[str, ...]:
    """No words besides those of the text."""
    del lines
    return ()


def as_it_is(row: Row, random: np.random.Generator, vocabulary: Vocabulary) -> Row:
    """The example itself."""
    del random, vocabulary
    return row


@dataclass(frozen=True)
class Reader:
    """A reader of lines, which makes tokens of them.

    Attributes:
        tokenizer: The model's.
        length: Tokens of an example at most.
        start_id: What a decoder beside an encoder begins with, where the model says it.
    """

    tokenizer: Tokenizer
    length: int
    start_id: int | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The words."""
        return self.tokenizer.vocabulary


@dataclass(frozen=True)
class Task:
    """How lines become examples.

    Attributes:
        name: As it is written on the command line.
        architecture: The model that it is for.
        unit: The kind of vocabulary that is built where none is given: words or characters.
        rows: The examples.
        text: What of the lines the vocabulary is built from.
        extra_words: Words that the vocabulary has to have as well.
        draw: What is random in an example each time that it is used.
        whole: The file is one text, so that neighbours are validated together; else every line is an example.
    """

    name: str
    architecture: str
    unit: str
    rows: Callable[[Lines, Reader], Sequence[Row]]
    text: Words = field(default=lambda lines: lines)
    extra_words: Callable[[Lines], tuple[str, ...]] = nothing
    draw: Draw = as_it_is
    whole: bool = False


def id_of(vocabulary: Vocabulary, word: str) -> int:
    """The ID of a word that the task needs.

    Raises:
        InputError: The vocabulary has no such word.
    """
    if word not in vocabulary.ids:
        raise InputError(f"vocabulary {vocabulary.name} has no {visible(word)}, which this task needs: add it")
    return vocabulary.ids[word]


def needed(vocabulary: Vocabulary, token_id: int | None, what: str) -> int:
    """An ID that the task needs.

    Raises:
        InputError: The vocabulary has none.
    """
    if token_id is None:
        raise InputError(f"vocabulary {vocabulary.name} has no {what}, which this task needs: add it")
    return token_id


def stream(lines: Lines, tokenizer: Tokenizer) -> Host:
    """The tokens of a whole text, without what a tokenizer puts around it.

    Raises:
        InputError: There are none.
    """
    parts = [np.array(ids, dtype=np.int32) for ids in map(tokenizer_ids(tokenizer), several_lines(lines, ENCODED))]
    tokens = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    if tokens.size < 2:
        raise InputError("the file has fewer than two tokens: a text to learn from needs more")
    return tokens


def tokenizer_ids(tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    """Gives the IDs of a text, without those that stand for none of its characters."""
    words = tokenizer.vocabulary
    unknown = words.unknown_id or 0

    def ids(text: str) -> list[int]:
        if words.kind == "characters" and not any(word in text for word in words.special_words):
            return [words.ids.get(character, unknown) for character in text]
        return [token.id for token in tokenizer.encode(text).tokens if not (token.special and token.start == token.end)]

    return ids


@dataclass(frozen=True, eq=False)
class Windows(Sequence[Row]):
    """Stretches of a text, one after the other; `row` makes the example of one."""

    tokens: Host
    length: int
    row: Callable[[Host], Row]
    shift: int = 0

    def __len__(self) -> int:
        """How many there are; the last may be shorter, but has something to predict."""
        return -(-(self.tokens.size - self.shift) // self.length)

    def __getitem__(self, place: int) -> Row:  # type: ignore[override]
        """One of them; with `shift` tokens of the next."""
        if not 0 <= place < len(self):
            raise IndexError(place)
        start = place * self.length
        return self.row(self.tokens[start : start + self.length + self.shift].astype(np.int64))


def fields(line: str, number: int, what: str) -> tuple[str, str]:
    """The two parts of a line, at its last tab.

    Raises:
        InputError: There is no tab, or nothing on one side of it, or the line is too long.
    """
    if len(line) > MAX_CHARACTERS:
        raise InputError(f"line {number} has {len(line):,} characters, the limit is {MAX_CHARACTERS:,}: cut it")
    first, tab, second = line.rstrip("\r\n").rpartition("\t")
    if not tab or not first.strip() or not second.strip():
        raise InputError(f"line {number} has no tab between two texts: write {what}")
    return first, second


def pairs(lines: Lines, what: str) -> Iterator[tuple[str, str]]:
    """The two parts of every line that is not empty."""
    return (fields(line, number, what) for number, line in enumerate(_whole(lines), 1) if line.strip())


def _whole(lines: Lines) -> Iterator[str]:
    """The lines, long ones put together again of the parts in which they were read."""
    parts: list[str] = []
    for line in lines:
        parts.append(line)
        if line.endswith("\n"):
            yield "".join(parts)
            parts = []
    yield "".join(parts)
