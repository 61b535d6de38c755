"""How often each word of a text comes, exactly and in bounded memory."""

from __future__ import annotations

import heapq
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import IO, Self

from tui_transformer.errors import InputError

MOST_IN_MEMORY = 1_000_000
"""Distinct words in memory (about 150 MB); more of them go to sorted temporary files, which are merged at the end."""

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
    """Counts words; words must hold no tab or line break.

    To be used in a `with`, at whose end the temporary files are gone.

    Attributes:
        most: Distinct words that are kept in memory.
        runs: Sorted tables of words and counts that are in files.
    """

    most: int = MOST_IN_MEMORY
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
        if len(self._table) > self.most:
            self._spill()

    def _spill(self) -> None:
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
            for word, count, place in self._merged():
                tokens, distinct = tokens + count, distinct + 1
                if count >= min_frequency:
                    yield -count, place, word

        best = heapq.nsmallest(size, frequent())
        return Counted(tuple((word, -less) for less, _, word in best), tokens, distinct)

    def _merged(self) -> Iterator[Row]:
        rows = heapq.merge(*map(_rows, self.runs), self._sorted_table())
        for word, same in groupby(rows, itemgetter(0)):
            counts, places = zip(*(row[1:] for row in same), strict=True)
            yield word, sum(counts), min(places)


def _rows(run: IO[str]) -> Iterator[Row]:
    for line in run:
        word, count, place = line.rstrip("\n").split("\t")
        yield word, int(count), int(place)
