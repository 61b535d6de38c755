"""The examples of a run: read from its file, split, and drawn in batches."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED, counted
from tui_transformer.errors import InputError, UsageError
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.tasks import Reader, Row, Task, needed, task_of
from tui_transformer.records import dataclass
from tui_transformer.text.build import Built, build_bpe, build_characters, build_words
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.files import read_lines, shown_path
from tui_transformer.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tui_transformer.text.vocabulary_rules import WordRule

BUILDERS: dict[str, Callable[..., Built]] = {
    "words": build_words,
    "characters": build_characters,
    "bpe": build_bpe,
}
VALIDATED = 50
"""Batches of the validation that are looked at, at most."""

_FOR_VALIDATION = 1 << 32
"""Batches of the training have smaller numbers."""


@dataclass(frozen=True, eq=False)
class Data:
    """Examples for training and for validation, in batches that depend on nothing but the seed and their number."""

    task: Task
    settings: Settings
    vocabulary: Vocabulary
    rows: Sequence[Row]

    @cached_property
    def parts(self) -> tuple[Host, Host]:
        """The places of the examples for training and for validation."""
        return split(len(self.rows), self.settings.validation, self.settings.seed, whole=self.task.whole)

    @property
    def per_epoch(self) -> int:
        """Batches of the training an epoch; the last of them may have fewer examples."""
        return -(-len(self.parts[0]) // self.settings.batch)

    def batch(self, number: int) -> Batch:
        """A batch of the training, counted from 0 through all epochs, each in an order of its own, from the seed."""
        size, (epoch, place) = self.settings.batch, divmod(number, self.per_epoch)
        order = np.random.default_rng((self.settings.seed, epoch)).permutation(len(self.parts[0]))
        return self._batch(self.parts[0][order[place * size : (place + 1) * size]], number)

    def validation(self) -> Iterator[Batch]:
        """The batches of the validation, the same each time."""
        places, size = self.parts[1], self.settings.batch
        for i, start in enumerate(range(0, min(len(places), size * VALIDATED), size)):
            yield self._batch(places[start : start + size], _FOR_VALIDATION + i)

    def _batch(self, places: Host, number: int) -> Batch:
        random = np.random.default_rng((self.settings.seed, number))
        rows = [self.task.draw(self.rows[place], random, self.vocabulary) for place in places.tolist()]
        return together(rows, self.vocabulary.pad_id)


def lines_of(settings: Settings) -> list[str]:
    """The lines of the run's file; InputError where it cannot be read, or is empty."""
    path = Path(settings.file)
    with contextlib.suppress(OSError, ValueError):  # reading says what is wrong
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # it cannot be read again when the run is resumed
            raise InputError(f"{shown_path(path)} is a pipe or a device: save its text in a file and name that")
    lines = list(read_lines([path]))
    if not any(line.strip() for line in lines):
        raise InputError(f"{shown_path(path)} is empty: there is nothing to learn from")
    return lines


def fingerprint(lines: Sequence[str]) -> str:
    """A hash that is the same only for the same text."""
    whole = hashlib.sha256()
    for line in lines:
        whole.update(line.encode("utf-8", "surrogatepass"))
    return whole.hexdigest()


def vocabulary_for(settings: Settings, lines: Sequence[str]) -> Vocabulary:
    """A vocabulary built from the text, with the words that the task needs.

    InputError where there is nothing to build from.
    """
    task = task_of(settings.task)
    unit = settings.tokens or task.unit
    with _naming(settings):
        own_words = task.extra_words(lines)
        given = {name: value for name in ("split", "case") if (value := getattr(settings, name))}
        if given and unit != "words":
            raise UsageError(f"--{next(iter(given))} says what a word is: leave it out, or use --tokens words")
        rule = {"rule": WordRule(**given)} if given else {}
        built = BUILDERS[unit](task.text(lines), settings.vocab_size, **rule).vocabulary
    missing = tuple(word for word in own_words if word not in built.ids)
    if missing and unit == "bpe":
        raise InputError(f"--tokens bpe: {settings.task} needs words of its own in the vocabulary: use words")
    first = len(built.specials.names)  # special words stand together at the beginning
    marks = tuple(word for word in missing if word in SPECIAL_WORDS)
    others = tuple(word for word in missing if word not in marks)
    return dataclasses.replace(built, words=(*built.words[:first], *marks, *built.words[first:], *others))


def read_data(settings: Settings, lines: Sequence[str], tokenizer: Tokenizer, start_id: int | None = None) -> Data:
    """The examples; InputError where a line or the vocabulary does not fit the task, or there are too few."""
    task, words = task_of(settings.task), tokenizer.vocabulary
    with _naming(settings):
        rows = task.rows(lines, Reader(tokenizer, settings.length, start_id))
        if not task.whole:
            needed(words, words.pad_id, words.specials.padding)
        kind = "stretch of text" if task.whole else "line"
        if not rows:
            raise InputError(f"no {kind} to learn from: use a longer file, or a larger --length")
        if len(rows) == 1 and settings.validation:
            advice = "use a longer file, a smaller --length, or --validation 0"
            raise InputError(f"one {kind} is too few to validate on some: {advice}")
    return Data(task, settings, words, rows)


@contextlib.contextmanager
def _naming(settings: Settings) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:
        raise InputError(f"{shown_path(Path(settings.file))}: {error}") from error


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples as arrays of batch × longest, padded with the pad ID and, in the targets, with −1.

    The mask is 1 for every token of the IDs and 0 for padding.
    """

    ids: Host
    targets: Host
    decoder_ids: Host | None
    tokens: int
    mask: Host

    @property
    def counted(self) -> int:
        """Positions that are in the loss."""
        return counted(self.targets)


def together(rows: Sequence[Row], pad_id: int | None) -> Batch:
    """The batch of some rows."""
    pad = pad_id or 0
    decoder = [row.decoder_ids for row in rows if row.decoder_ids is not None]
    tokens = sum(row.ids.size for row in rows) + sum(ids.size for ids in decoder)
    targets = _padded([row.targets for row in rows], NOT_COUNTED)
    mask = _padded([np.ones_like(row.ids) for row in rows], 0)
    ids, decoder_ids = _padded([row.ids for row in rows], pad), _padded(decoder, pad) if decoder else None
    return Batch(ids, targets, decoder_ids, tokens, mask)


def _padded(rows: Sequence[Host], value: int) -> Host:
    result = np.full((len(rows), max(row.size for row in rows)), value, dtype=np.int64)
    for i, row in enumerate(rows):
        result[i, : row.size] = row
    return result


def split(count: int, share: float, seed: int, *, whole: bool) -> tuple[Host, Host]:
    """Examples for training and for validation: the last ones of a text that is whole, else picked at random.

    Where a share is wanted there is at least one of each.
    """
    held_out = min(max(round(count * share), 1), count - 1) if share else 0
    order = np.arange(count) if whole else np.random.default_rng((seed, count)).permutation(count)
    return np.sort(order[: count - held_out]), np.sort(order[count - held_out :])
