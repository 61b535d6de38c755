"""Sums of a survey: what is kept of any number of texts. + is associative and commutative, to the last bit."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tui_transformer.analysis.survey.exact import Moments
from tui_transformer.analysis.survey.examples import NONE, Examples
from tui_transformer.analysis.survey.reading import Place
from tui_transformer.text.known_words import FIRST

Places = tuple[tuple[Place, int], ...]
"""Measures in order, each with its number of units."""

ARRAYS = ("count", "total", "squares", "values", "texts", "positions")


Words = tuple[tuple[int, int, str], ...]
"""Words with the place of each: the number of the text, and that of the token in it."""


@dataclass(frozen=True)
class Counts:
    """How many texts were read, their tokens, and how many were left out or cut.

    Attributes:
        unknown: Tokens that stand for what the vocabulary does not know.
        unknown_words: The first different words of them, no more than are named and one.
    """

    texts: int = 0
    tokens: int = 0
    left_out: int = 0
    cut: int = 0
    unknown: int = 0
    unknown_words: Words = ()

    def __add__(self, other: Counts) -> Counts:
        names = (field.name for field in dataclasses.fields(self))
        added: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Counts(**added | {"unknown_words": first_words(self.unknown_words + other.unknown_words)})


def first_words(words: Words) -> Words:
    """The first different ones in the order of their places."""
    first = {word: (text, token, word) for text, token, word in sorted(words, reverse=True)}
    return tuple(sorted(first.values())[: FIRST + 1])


def _check_stored(archive: zipfile.ZipFile) -> None:
    """Raise ValueError for what is packed: a small file could hold any number of cells."""
    if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
        raise ValueError("packed")


@dataclass(frozen=True)
class Source:
    """A text and where it is from; lines are counted from 1."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over texts.

    Attributes:
        counts: How many.
        places: What was measured; the units of all are columns, one place behind the other.
        moments: Of every unit, over texts.
        examples: Of every unit.
        sources: The texts that are examples, by number.
    """

    counts: Counts
    places: Places
    moments: Moments
    examples: Examples
    sources: Mapping[int, Source]

    @classmethod
    def nothing(cls, top: int) -> Sums:
        """The sums of no text."""
        return cls(Counts(), (), Moments.of(np.zeros((0, 0))), Examples.none(0, top), {})

    def __add__(self, other: Sums) -> Sums:
        if self.places != other.places:
            places = tuple(sorted({**dict(self.places), **dict(other.places)}.items()))
            if places != self.places or places != other.places:
                return self._spread(places)._plus(other._spread(places))
        return self._plus(other)

    def _plus(self, other: Sums) -> Sums:
        sums = Sums(
            self.counts + other.counts,
            self.places,
            self.moments + other.moments,
            self.examples + other.examples,
            {**self.sources, **other.sources},
        )
        return sums.pruned()

    def pruned(self) -> Sums:
        """Without the texts that are no example any more."""
        used = np.unique(self.examples.texts)
        kept = {int(text): self.sources[int(text)] for text in used[used != NONE]}
        return dataclasses.replace(self, sources=kept)

    def _spread(self, places: Places) -> Sums:
        """The same with units for more places, of which nothing was counted."""
        if places == self.places:
            return self
        units, starts, following = sum(size for _, size in places), dict[Place, int](), 0
        for place, size in places:
            starts[place], following = following, following + size
        at = [np.arange(starts[place], starts[place] + size) for place, size in self.places]
        columns = np.concatenate([np.zeros(0, np.int64), *at])
        moments, examples = Moments.of(np.zeros((0, units))), Examples.none(units, self.examples.values.shape[1])
        for name in ARRAYS:
            to, source = (moments, self.moments) if hasattr(moments, name) else (examples, self.examples)
            where = (slice(None), columns) if name in ("total", "squares") else columns
            getattr(to, name)[where] = getattr(source, name)
        return Sums(self.counts, places, moments, examples, self.sources)

    # As bytes, for other processes and for the file that a survey goes on from

    def to_bytes(self, **more: Any) -> bytes:
        """Everything as an NPZ file, with `more` in its header."""
        header = {
            "counts": dataclasses.asdict(self.counts),
            "places": [[dataclasses.astuple(place), size] for place, size in self.places],
            "sources": [[number, dataclasses.astuple(source)] for number, source in self.sources.items()],
            "more": more,
        }
        moments, examples = self.moments, self.examples
        arrays = {name: getattr(moments if hasattr(moments, name) else examples, name) for name in ARRAYS}
        file = io.BytesIO()
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> tuple[Sums, Mapping[str, Any]]:
        """The sums that `to_bytes` wrote, and the rest of its header.

        Raises:
            ValueError: It is not that.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                # in an archive, of which all that is damaged gets one error
                _check_stored(file.zip)
                header = json.loads(file["header"].tobytes())
                arrays = {name: file[name] for name in ARRAYS}
            places = tuple((Place(*place), int(size)) for place, size in header["places"])
            sources = {int(number): Source(*source) for number, source in header["sources"]}
            moments = Moments(*(arrays[name] for name in ARRAYS[:3]))
            examples = Examples(*(arrays[name] for name in ARRAYS[3:]))
            words = first_words(tuple(map(tuple, header["counts"].pop("unknown_words"))))
            counts = Counts(**header["counts"], unknown_words=words)
            return cls(counts, places, moments, examples, sources), header["more"]
        except Exception as error:
            raise ValueError("not the sums of a survey") from error
