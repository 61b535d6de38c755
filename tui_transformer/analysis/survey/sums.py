"""Sums of a survey: what is kept of any number of texts. + is associative and commutative, to the last bit."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import math
import zipfile
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tui_transformer.analysis.measures import Place
from tui_transformer.engine.backend import Host
from tui_transformer.records import dataclass
from tui_transformer.text.known_words import FIRST

Places = tuple[tuple[Place, int], ...]
"""Measures in order, each with its number of units."""

ARRAYS = ("count", "total", "squares", "values", "texts", "positions")


Words = tuple[tuple[int, int, str], ...]
"""Words with the place of each: the number of the text, and that of the token in it."""


@dataclass(frozen=True)
class Counts:
    """How many texts were read, their tokens, and how many were left out or cut.

    `unknown` tokens stand for what the vocabulary does not know; the first different words of them are kept, no more
    than are named and one.
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


def starts_of(places: Places) -> dict[Place, int]:
    """The first column of every place, where the units of all lie one behind the other."""
    starts = itertools.accumulate((size for _, size in places), initial=0)
    return dict(zip((place for place, _ in places), starts, strict=False))


@dataclass(frozen=True)
class Source:
    """A text and where it is from; lines are counted from 1."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over texts: of every unit its moments and strongest examples, and the texts that are examples, by number.

    The units of all places are columns, one place behind the other.
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
        alike = self.places == other.places
        places = self.places if alike else tuple(sorted({**dict(self.places), **dict(other.places)}.items()))
        one, two = self._spread(places), other._spread(places)
        moments, examples = one.moments + two.moments, one.examples + two.examples
        return Sums(self.counts + other.counts, places, moments, examples, {**self.sources, **other.sources}).pruned()

    def pruned(self) -> Sums:
        """Without the texts that are no example any more."""
        used = np.unique(self.examples.texts)
        kept = {int(text): self.sources[int(text)] for text in used[used != NONE]}
        return dataclasses.replace(self, sources=kept)

    def _spread(self, places: Places) -> Sums:
        """The same with units for more places, of which nothing was counted."""
        if places == self.places:
            return self
        units, starts = sum(size for _, size in places), starts_of(places)
        at = [np.arange(starts[place], starts[place] + size) for place, size in self.places]
        columns = np.concatenate([np.zeros(0, np.int64), *at])
        moments, examples = Moments.of(np.zeros((0, units))), Examples.none(units, self.examples.values.shape[1])
        for wide, own in ((moments, self.moments), (examples, self.examples)):
            for name, values in vars(own).items():
                getattr(wide, name)[(slice(None), columns) if name in ("total", "squares") else columns] = values
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
        file, data = io.BytesIO(), np.frombuffer(json.dumps(header).encode(), np.uint8)
        np.savez(file, header=data, **vars(self.moments), **vars(self.examples))
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> tuple[Sums, Mapping[str, Any]]:
        """The sums that `to_bytes` wrote, and the rest of its header; ValueError where it is not that."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                if any(each.compress_type != zipfile.ZIP_STORED for each in file.zip.infolist()):
                    raise ValueError("packed: it could hold any number of cells")  # noqa: TRY301 - as all damage
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


NONE = np.iinfo(np.int64).max
"""The text where there are fewer than k."""


@dataclass(frozen=True, eq=False)
class Examples:
    """The strongest of every unit, the strongest first: values, numbers of texts and tokens, each units × k.

    Where there are fewer the value is −∞ and the text `NONE`.
    """

    values: Host
    texts: Host
    positions: Host

    @classmethod
    def of(cls, values: Host, texts: Host, positions: Host, top: int) -> Examples:
        """The strongest of candidates: values and positions, units × candidates (NaN for none), and their texts."""
        there = np.isfinite(values)
        parts = zip((values, texts, positions), EMPTY, strict=True)
        return cls(*(np.where(there, part, empty) for part, empty in parts)).strongest(top)

    @classmethod
    def none(cls, units: int, top: int) -> Examples:
        """Those of no text."""
        return cls(np.zeros((units, 0)), np.zeros((units, 0), np.int64), np.zeros((units, 0), np.int64)).strongest(top)

    def strongest(self, top: int) -> Examples:
        """The k strongest of these."""
        order = np.lexsort((self.positions, self.texts, -self.values), axis=-1)[:, :top]
        missing = ((0, 0), (0, top - order.shape[1]))
        return Examples(
            *(
                np.pad(np.take_along_axis(part, order, axis=1), missing, constant_values=empty)
                for part, empty in zip(vars(self).values(), EMPTY, strict=True)
            )
        )

    def __add__(self, other: Examples) -> Examples:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Examples(*(np.concatenate(pair, axis=1) for pair in pairs)).strongest(self.values.shape[1])


EMPTY = (-np.inf, NONE, 0)
"""Value, text and position where there is no example."""

FRACTION, DIGIT = 96, 32
UNITS = tuple(2.0**power for power in range(FRACTION - DIGIT, -FRACTION - 1, -DIGIT))
"""The value that one of each part stands for; 2³¹ numbers fit before a part is full."""

LARGEST = 2.0**40
"""Larger numbers, infinite ones and NaN are not counted."""

SPLITTER = 2.0**27 + 1


@dataclass(frozen=True, eq=False)
class Moments:
    """How many numbers (units), their sum and the sum of their squares (parts × units) of every unit."""

    count: Host
    total: Host
    squares: Host

    @classmethod
    def of(cls, values: Host) -> Moments:
        """Those of values, numbers × units, in float64."""
        there = np.abs(values) <= LARGEST  # false for NaN
        kept = np.where(there, values, 0.0)
        square, rest = _squared(kept)
        return cls(there.sum(axis=0), summed(kept), summed(square) + summed(rest))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def mean(self, unit: int) -> float:
        """The mean of a unit, rounded once; NaN where nothing was counted."""
        count = int(self.count[unit])
        return float(_whole(self.total[:, unit]) / count) if count else math.nan

    def deviation(self, unit: int) -> float:
        """√(Σ (x − mean)² ÷ (N − 1)) of a unit; NaN of fewer than two numbers."""
        count = int(self.count[unit])
        if count < 2:
            return math.nan
        spread = _whole(self.squares[:, unit]) - _whole(self.total[:, unit]) ** 2 / count
        return math.sqrt(max(float(spread / (count - 1)), 0.0))


def summed(values: Host) -> Host:
    """The sum of numbers × units over the numbers, as parts × units."""
    parts = np.empty((len(UNITS), values.shape[1]), np.int64)
    rest = values
    for at, unit in enumerate(UNITS):
        part = np.trunc(rest / unit)
        rest = rest - part * unit
        parts[at] = part.astype(np.int64).sum(axis=0)
    return parts


def _squared(values: Host) -> tuple[Host, Host]:
    """The square of every number and what its rounding left (Dekker 1971)."""
    square = values * values
    scaled = SPLITTER * values
    high = scaled - (scaled - values)
    low = values - high
    return square, ((high * high - square) + 2.0 * high * low) + low * low


def _whole(parts: Host) -> Fraction:
    """The number that the parts of one unit make."""
    number = 0
    for part in parts.tolist():
        number = (number << DIGIT) + part
    return Fraction(number, 1 << FRACTION)
