"""The examples of a run: read from its file, split, and drawn in batches."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.learning.batches import Batch, Order, Row, chosen, split, together
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.tasks import Task, task_of
from tui_transformer.learning.tasks.base import Reader, needed
from tui_transformer.text.build import build_bpe, build_characters, build_words
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.files import read_lines, shown_path
from tui_transformer.text.vocabulary import SPECIAL_WORDS, Vocabulary
from tui_transformer.text.vocabulary_rules import WordRule

BUILDERS: dict[str, Callable[..., Vocabulary]] = {
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

    @cached_property
    def order(self) -> Order:
        """The order of the training's examples."""
        return Order(len(self.parts[0]), self.settings.batch, self.settings.seed)

    def batch(self, number: int) -> Batch:
        """A batch of the training, counted from 0 through all epochs."""
        return self._batch(self.parts[0][self.order.examples(number)], number)

    def validation(self) -> Iterator[Batch]:
        """The batches of the validation, the same each time."""
        places, size = self.parts[1], self.settings.batch
        for i, start in enumerate(range(0, min(len(places), size * VALIDATED), size)):
            yield self._batch(places[start : start + size], _FOR_VALIDATION + i)

    def _batch(self, places: Host, number: int) -> Batch:
        random = np.random.default_rng((self.settings.seed, number))
        rows = [self.task.draw(row, random, self.vocabulary) for row in chosen(self.rows, places)]
        return together(rows, self.vocabulary.pad_id)


def lines_of(settings: Settings) -> list[str]:
    """The lines of the run's file.

    Raises:
        InputError: It cannot be read, or is empty.
    """
    path = Path(settings.file)
    _refuse_stream(path)
    lines = list(read_lines([path]))
    if not any(line.strip() for line in lines):
        raise InputError(f"{shown_path(path)} is empty: there is nothing to learn from")
    return lines


def _refuse_stream(path: Path) -> None:
    """Raise InputError for what cannot be read again when the run is resumed."""
    with contextlib.suppress(OSError, ValueError):  # reading says what is wrong
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InputError(f"{shown_path(path)} is a pipe or a device: save its text in a file and name that")


def fingerprint(lines: Sequence[str]) -> str:
    """A hash that is the same only for the same text."""
    whole = hashlib.sha256()
    for line in lines:
        whole.update(line.encode("utf-8", "surrogatepass"))
    return whole.hexdigest()


def vocabulary_for(settings: Settings, lines: Sequence[str]) -> Vocabulary:
    """A vocabulary built from the text, with the words that the task needs.

    Raises:
        InputError: The text has nothing to build it from.
    """
    task = task_of(settings.task)
    unit = settings.tokens or task.unit
    with _naming(settings):
        own_words = task.extra_words(lines)
        built = BUILDERS[unit](task.text(lines), settings.vocab_size, **_rule(settings, unit))
    missing = tuple(word for word in own_words if word not in built.ids)
    if missing and unit == "bpe":
        raise InputError(f"--tokens bpe: {settings.task} needs words of its own in the vocabulary: use words")
    first = len(built.specials.names)  # special words stand together at the beginning
    marks = tuple(word for word in missing if word in SPECIAL_WORDS)
    others = tuple(word for word in missing if word not in marks)
    return dataclasses.replace(built, words=(*built.words[:first], *marks, *built.words[first:], *others))


def _rule(settings: Settings, unit: str) -> dict[str, WordRule]:
    """The rule of what a word is, where the entries are words.

    Raises:
        UsageError: A rule for words is given, and they are not.
    """
    given = {name: value for name in ("split", "case") if (value := getattr(settings, name))}
    if given and unit != "words":
        raise UsageError(f"--{next(iter(given))} says what a word is: leave it out, or use --tokens words")
    return {"rule": WordRule(**given)} if given else {}


def read_data(settings: Settings, lines: Sequence[str], tokenizer: Tokenizer, start_id: int | None = None) -> Data:
    """The examples.

    Raises:
        InputError: A line or the vocabulary does not fit the task, or there are too few examples.
    """
    task, words = task_of(settings.task), tokenizer.vocabulary
    with _naming(settings):
        rows = task.rows(lines, Reader(tokenizer, settings.length, start_id))
        if not task.whole:
            needed(words, words.pad_id, words.specials.padding)
        _check_count(len(rows), settings, "stretch of text" if task.whole else "line")
    return Data(task, settings, words, rows)


def _check_count(count: int, settings: Settings, kind: str) -> None:
    """Raise InputError where there are too few examples."""
    if not count:
        raise InputError(f"no {kind} to learn from: use a longer file, or a larger --length")
    if count == 1 and settings.validation:
        advice = "use a longer file, a smaller --length, or --validation 0"
        raise InputError(f"one {kind} is too few to validate on some: {advice}")


@contextlib.contextmanager
def _naming(settings: Settings) -> Iterator[None]:
    """Put the file's name before what is wrong with it."""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:
        raise InputError(f"{shown_path(Path(settings.file))}: {error}") from error
