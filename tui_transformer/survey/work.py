"""The work of one process of a survey: a model that is loaded once, and batches that are measured with it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from tui_transformer.analysis.survey.measures import Asked, Item, survey
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.errors import InputError
from tui_transformer.features.dictionary import Features
from tui_transformer.files import is_folder, is_there, json_object
from tui_transformer.machine import THREADS
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions
from tui_transformer.records import dataclass
from tui_transformer.text.encoding import MAX_CHARACTERS
from tui_transformer.text.files import lines_of, read_lines, shown_path

Batch = tuple[Item, ...]

ONE_THREAD = dict.fromkeys(THREADS, "1")
"""A worker computes on one core: products of several threads may be rounded otherwise, and workers share the cores."""


class Batchwise(Protocol):
    """What every worker does with a batch, with a model that it loads once."""

    @property
    def device(self) -> str:
        """Where it computes, as far as that is said: "cpu" or not."""

    def sums(self, batch: Batch) -> bytes:
        """What comes of a batch; InputError where that cannot be."""


@dataclass(frozen=True)
class Dictionary:
    """A dictionary of features by its path, and the steps that it reads and writes; None where the file says them."""

    path: str
    at: str | None = None
    into: str | None = None


@dataclass(frozen=True)
class Work:
    """The task of a survey: the model, and what is measured; `features` that the model is given for it."""

    options: ModelOptions
    asked: Asked
    features: Dictionary | None = None

    @cached_property
    def model(self) -> Model:
        """The model, loaded when it is first asked for; InputError where it cannot be."""
        model, given = self.options.load(), self.features
        return model if given is None else model.with_features(Features.load(given.path), given.at, into=given.into)

    @property
    def device(self) -> str:
        """As it was asked for."""
        return self.options.device

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has it without the model."""
        return Work, (self.options, self.asked, self.features)

    def sums(self, batch: Sequence[Item]) -> bytes:
        """The sums of a batch, as bytes; InputError where the model lacks what is measured, or memory is short."""
        try:
            return survey(self.model, batch, self.asked).to_bytes()
        except MemoryError as error:
            raise InputError("not enough memory: use fewer workers, or a shorter length") from error


def batch_bytes(batch: Batch) -> bytes:
    """A batch as JSON."""
    return json.dumps([[item.number, *dataclasses.astuple(item.source)] for item in batch]).encode()


def batch_of(data: bytes) -> Batch:
    """The batch of some JSON, which another process of the program wrote."""
    return tuple(Item(number, Source(*source)) for number, *source in json.loads(data))


STDIN = "-"
JSONL = (".jsonl", ".ndjson")
FIELD = "text"
LONGEST = 1 << 26
"""A longer line comes in parts, which JSON cannot."""

BATCH = 16
"""Texts that are measured together by a worker; their numbers do not depend on it."""


def check_files(files: Sequence[str]) -> None:
    """Raise InputError where a file is not there, or standard input is meant twice."""
    for name in files:
        if name != STDIN and not is_there(Path(name)):
            raise InputError(f"{shown_path(Path(name))}: no such file")
        if name != STDIN and is_folder(Path(name)):
            raise InputError(f"{shown_path(Path(name))} is a folder: name the files in it")
    if files.count(STDIN) > 1:
        raise InputError("- is given twice, and standard input can be read once")


def read_items(files: Sequence[str], read: Callable[[int], None] = lambda _: None) -> Iterator[Item]:
    """The texts of files, with their numbers; lines with nothing but blanks are none.

    Of the paths `-` is standard input, of JSONL where its first line begins with a brace. `read` is told how many bytes
    were read.

    Raises:
        InputError: A file cannot be read, or a line of JSONL has no text.
    """
    number = 0
    for name in files:
        shown = "standard input" if name == STDIN else shown_path(Path(name))
        objects = name.endswith(JSONL)
        if name == STDIN:
            lines = lines_of(sys.stdin.buffer, "standard input", longest=LONGEST)
        else:
            lines = read_lines([Path(name)], longest=LONGEST)
        for line_number, line in enumerate(lines, 1):
            read(len(line.encode("utf-8", "surrogatepass")))
            objects |= name == STDIN and line_number == 1 and line.startswith("{")
            if not line.strip():
                continue
            where = f"{shown} line {line_number:,}"
            text = json_object(line, where).get(FIELD) if objects else line.rstrip("\n")
            if not isinstance(text, str):
                raise InputError(f'{where}: no object with a text: write {{"{FIELD}": "…"}}')
            if text.strip():
                yield Item(number, Source(name, line_number, text[:MAX_CHARACTERS]))
                number += 1


def batches(items: Iterable[Item], size: int = BATCH) -> Iterator[tuple[Item, ...]]:
    """Neighbouring texts, so many together."""
    iterator = iter(items)
    while batch := tuple(itertools.islice(iterator, size)):
        yield batch


Spread = Callable[[Batchwise, Iterable[Batch]], Iterator[bytes | None]]
"""How batches are done: here, on processes, on Ray. What comes of each, in order; None while the next is not there."""


@contextlib.contextmanager
def spread_out(
    work: Batchwise, given: Iterable[Batch], spread: Spread
) -> Iterator[Iterator[tuple[Batch, bytes] | None]]:
    """Each batch with what comes of it, in order; None while the next is not there. No process is left behind."""
    waiting = deque[Batch]()

    def ahead() -> Iterator[Batch]:
        for batch in given:
            waiting.append(batch)
            yield batch

    results = spread(work, ahead())
    try:
        yield (None if result is None else (waiting.popleft(), result) for result in results)
    finally:
        if isinstance(results, Generator):
            results.close()


def add_texts(digest: hashlib.blake2b, items: Iterable[Item]) -> None:
    """Take some texts into a digest of all that went by."""
    for item in items:
        text = item.source.text.encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "little") + text)
