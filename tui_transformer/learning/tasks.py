"""The tasks that a model can be trained for: each turns the lines of a file into examples. `TASKS` is their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import MAX_CHARACTERS, Tokenizer
from tui_transformer.text.files import several_lines
from tui_transformer.text.vocabulary import Vocabulary
from tui_transformer.text.vocabulary_rules import normal_form

Lines = Sequence[str]
"""The lines of a file, with their ends; a very long one comes in parts."""

ENCODED = 1 << 16
"""Characters that are split into tokens at a time."""

MASK = "[MASK]"
CHOSEN, HIDDEN, REPLACED = 0.15, 0.8, 0.1
"""Of the words 15 % are predicted; of these 80 % are hidden, 10 % are another word, 10 % stay as they are."""

LABELLED, TRANSLATED = "the line, a tab and its label", "source, tab, target"
"""Lines of two parts, in the words of messages."""


@dataclass(frozen=True, eq=False)
class Row:
    """One example: what the model reads, and the right ID at every position that is predicted.

    With two sequences the targets are of the decoder, which reads `decoder_ids`.
    """

    ids: Host
    targets: Host
    decoder_ids: Host | None = None


@dataclass(frozen=True)
class Reader:
    """A reader of lines, which makes tokens of them: of an example at most `length`.

    A decoder beside an encoder begins with `start_id`, where the model says it.
    """

    tokenizer: Tokenizer
    length: int
    start_id: int | None = None


@dataclass(frozen=True)
class Task:
    """How lines become examples, under the name that is written on the command line.

    `unit` is the kind of vocabulary that is built where none is given, words or characters, from the `text` of the
    lines, with `extra_words`. `rows` are the examples, and `draw` is what is random in one each time that it is used.
    Where `whole`, the file is one text, so that neighbours are validated together; else every line is an example.
    """

    name: str
    architecture: str
    unit: str
    rows: Callable[[Lines, Reader], Sequence[Row]]
    text: Callable[[Lines], Iterable[str]] = lambda lines: lines
    extra_words: Callable[[Lines], tuple[str, ...]] = lambda _: ()
    draw: Callable[[Row, np.random.Generator, Vocabulary], Row] = lambda row, _random, _vocabulary: row
    whole: bool = False


def task_of(name: str) -> Task:
    """The task of a name in `TASKS`; UsageError where there is none."""
    if name not in TASKS:
        raise UsageError(f"no task is called {name[:40]!r}: use {', '.join(TASKS)}")
    return TASKS[name]


# A whole text, in stretches


@dataclass(frozen=True, eq=False)
class Windows(Sequence[Row]):
    """Stretches of a text, one after the other: of each token of one, that so many places later is the target."""

    tokens: Host
    length: int
    shift: int

    def __len__(self) -> int:
        """How many there are; the last may be shorter, but has something to predict."""
        return -(-(self.tokens.size - self.shift) // self.length)

    def __getitem__(self, place: int) -> Row:  # type: ignore[override]
        """One of them; its last targets are the first of the next."""
        if not 0 <= place < len(self):
            raise IndexError(place)
        start = place * self.length
        stretch = self.tokens[start : start + self.length + self.shift].astype(np.int64)
        return Row(stretch[: stretch.size - self.shift], stretch[self.shift :])


def next_tokens(lines: Lines, reader: Reader) -> Sequence[Row]:
    """Stretches of the text between its begin and end words, where the vocabulary has these; each predicts the next."""
    words = reader.tokenizer.vocabulary
    ends = [np.array([] if end is None else [end], dtype=np.int32) for end in (words.begin_id, words.end_id)]
    tokens = np.concatenate([ends[0], stream(lines, reader.tokenizer), ends[1]])
    return Windows(tokens, reader.length, shift=1)


def masked_words(lines: Lines, reader: Reader) -> Sequence[Row]:
    """Stretches of the text; what is hidden is drawn anew each time (Devlin et al. 2019, §3.1)."""
    _id_of(reader.tokenizer.vocabulary, MASK)
    return Windows(stream(lines, reader.tokenizer), reader.length, shift=0)


def draw_masked(row: Row, random: np.random.Generator, vocabulary: Vocabulary) -> Row:
    """Hide 15 % of the ordinary words at random, one at least."""
    special, ordinary = _kinds(vocabulary)
    chance = np.where(np.isin(row.ids, special), 2.0, random.random(row.ids.size))
    chosen = chance < CHOSEN
    chosen[chance.argmin()] = True
    fate = random.random(row.ids.size)
    ids = np.where(chosen & (fate < HIDDEN), vocabulary.ids[MASK], row.ids)
    replaced = chosen & (fate >= HIDDEN) & (fate < HIDDEN + REPLACED)
    ids = np.where(replaced, random.choice(ordinary, row.ids.size), ids)
    return Row(ids, np.where(chosen, row.ids, NOT_COUNTED))


@lru_cache(maxsize=4)
def _kinds(vocabulary: Vocabulary) -> tuple[Host, Host]:
    special = np.array(sorted(vocabulary.special_ids))
    return special, np.setdiff1d(np.arange(vocabulary.size), special)


def stream(lines: Lines, tokenizer: Tokenizer) -> Host:
    """The tokens of a whole text, without what a tokenizer puts around it; InputError where there are none."""
    ids = map(tokenizer_ids(tokenizer), several_lines(lines, ENCODED))
    tokens = np.fromiter(chain.from_iterable(ids), np.int32)
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


# Lines of two parts


def classified(lines: Lines, reader: Reader) -> Sequence[Row]:
    """A line with its label as the target of its first token; what is longer is cut.

    The labels are words of the vocabulary, so the model is an ordinary one: `output.probabilities` at the first token
    is the answer.
    """
    ids, made = tokenizer_ids(reader.tokenizer), []
    for text, label in _pairs(lines, LABELLED):
        tokens = np.array(ids(text)[: reader.length], dtype=np.int64)
        targets = np.full(tokens.shape, NOT_COUNTED)
        if tokens.size:
            targets[0] = _id_of(reader.tokenizer.vocabulary, normal_form(label.strip()))
            made.append(Row(tokens, targets))
    return made


def labels(lines: Lines) -> tuple[str, ...]:
    """The different labels, in the order of their first appearance.

    InputError where there is but one, or one has spaces.
    """
    different = tuple(dict.fromkeys(normal_form(label.strip()) for _, label in _pairs(lines, LABELLED)))
    for label in different:
        if len(label.split()) > 1:
            raise InputError(f"label {label[:60]!r} has spaces: write it as one word, as in question_or_order")
    if len(different) == 1:
        raise InputError(f"every line has the label {different[0]!r}: there is nothing to tell apart")
    return different


def translated(lines: Lines, reader: Reader) -> Sequence[Row]:
    """The decoder reads the begin word and the target, and predicts the target and the end word; longer is cut."""
    target = target_tokenizer(reader.tokenizer)
    words, ids, target_ids, made = target.vocabulary, tokenizer_ids(reader.tokenizer), tokenizer_ids(target), []
    first = words.begin_id if reader.start_id is None else reader.start_id
    begin, end = needed(words, first, words.specials.begin), needed(words, words.end_id, words.specials.end)
    for source, translation in _pairs(lines, TRANSLATED):
        read, written = ids(source)[: reader.length], target_ids(translation)[: reader.length - 1]
        if read and written:
            both = np.array([begin, *written, end], dtype=np.int64)
            made.append(Row(np.array(read, dtype=np.int64), both[1:], both[:-1]))
    return made


def _pairs(lines: Lines, what: str) -> Iterator[tuple[str, str]]:
    """The two parts of every line that is not empty, parted at its last tab."""
    for number, line in enumerate(_whole(lines), 1):
        if not line.strip():
            continue
        if len(line) > MAX_CHARACTERS:
            raise InputError(f"line {number} has {len(line):,} characters, the limit is {MAX_CHARACTERS:,}: cut it")
        first, tab, second = line.rstrip("\r\n").rpartition("\t")
        if not tab or not first.strip() or not second.strip():
            raise InputError(f"line {number} has no tab between two texts: write {what}")
        yield first, second


def _whole(lines: Lines) -> Iterator[str]:
    """The lines, long ones put together again of the parts in which they were read."""
    parts: list[str] = []
    for line in lines:
        parts.append(line)
        if line.endswith("\n"):
            yield "".join(parts)
            parts = []
    yield "".join(parts)


def _id_of(vocabulary: Vocabulary, word: str) -> int:
    return needed(vocabulary, vocabulary.ids.get(word), visible(word))


def needed(vocabulary: Vocabulary, token_id: int | None, what: str) -> int:
    """An ID that the task needs; InputError where the vocabulary has none."""
    if token_id is None:
        raise InputError(f"vocabulary {vocabulary.name} has no {what}, which this task needs: add it")
    return token_id


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task("next-word", "decoder", "words", next_tokens, whole=True),
        Task("next-character", "decoder", "characters", next_tokens, whole=True),
        Task(
            "masked-word", "encoder", "words", masked_words,
            extra_words=lambda _: (MASK,), draw=draw_masked, whole=True,
        ),
        Task(
            "classify", "encoder", "words", classified,
            text=lambda lines: (text for text, _ in _pairs(lines, LABELLED)), extra_words=labels,
        ),
        Task(
            "pairs", "encoder-decoder", "words", translated,
            text=lambda lines: (text for pair in _pairs(lines, TRANSLATED) for text in pair),
        ),
    )
}  # fmt: skip
"""By name, in the order of the options."""
