"""Steps that were recorded over many texts: one array of each, whose rows are read as they are asked for.

A folder holds `index.json` and, of every step, NPY files of some texts each, which NumPy's `mmap_mode="r"` opens too.
The index says of which model they are, which steps, shapes and precision, and how many rows every text has of each
sequence of tokens: its positions from 0 on, text behind text, so that the text and position of every row follow.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.names import ending, one
from tui_transformer.errors import InputError
from tui_transformer.files import expanded, read_json
from tui_transformer.model.weights_file import WeightsFile
from tui_transformer.records import dataclass, field

INDEX, KIND = "index.json", "steps over texts"
LARGEST, LONGEST_HEADER = 1 << 28, 1 << 12
"""Bytes of an index, and of the header of a file."""

MOST_OPEN = 64
"""Files of a step that are open at once."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
PRECISIONS = ("float32", "float64", "int64")
TEXTS = ""
"""The sequence of a step that has one row for each text."""

IDS = "input.ids"
"""The end of the names of the token IDs, which are recorded beside steps of their tokens."""


@dataclass(frozen=True)
class Kept:
    """An array that is kept: the sequence whose tokens are its rows, the shape of a row, and the precision."""

    sequence: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Index:
    """What a folder holds.

    Attributes:
        settings: Which model, with its fingerprint, and how many tokens of a text at most.
        arrays: Steps, and token IDs of their sequences, by their own names.
        aliases: Other names of steps.
        counts: Of every sequence, how many tokens each text has; 0 of one without a token.
        stops: Behind which text each file ends.
        digest: Of the texts.
        complete: Whether these are all texts that were given.
    """

    settings: Mapping[str, Any]
    arrays: Mapping[str, Kept]
    aliases: Mapping[str, str]
    counts: Mapping[str, Sequence[int]]
    stops: Sequence[int] = ()
    digest: str = ""
    complete: bool = False

    @property
    def texts(self) -> int:
        """How many texts were read."""
        return self.stops[-1] if self.stops else 0

    def to_json(self) -> dict[str, Any]:
        """What the file holds."""
        return {"kind": KIND, **vars(self), "arrays": {name: vars(kept) for name, kept in self.arrays.items()}}

    @classmethod
    def read(cls, folder: Path) -> Index:
        """That of a folder; InputError where it is none, or does not fit together."""
        path = folder / INDEX
        raw = read_json(path, LARGEST)
        try:
            arrays = {
                name: Kept(str(kept["sequence"]), tuple(map(int, kept["shape"])), str(kept["dtype"]))
                for name, kept in raw["arrays"].items()
            }
            counts = {name: list(map(_count, each)) for name, each in raw["counts"].items()}
            aliases = {str(alias): str(name) for alias, name in raw["aliases"].items()}
            stops, settings = list(map(_count, raw["stops"])), dict(raw["settings"])
            index = cls(settings, arrays, aliases, counts, stops, str(raw["digest"]), raw["complete"] is True)
            fits = (
                raw["kind"] == KIND
                and stops == sorted(stops)
                and set(aliases.values()) <= set(arrays)
                and all(len(each) == index.texts for each in counts.values())
                and all(map(NAME.fullmatch, arrays))
                and all(kept.sequence in counts and kept.dtype in PRECISIONS for kept in arrays.values())
                and all(0 < size < 1 << 40 for kept in arrays.values() for size in kept.shape)
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InputError) as error:
            raise InputError(f"{path}: not the index of recorded steps") from error
        if not fits:
            raise InputError(f"{path}: not the index of recorded steps, or a damaged one")
        return index


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 40:
        raise ValueError("no count")
    return value


def file_of(folder: Path, name: str, number: int) -> Path:
    """The file of some texts of an array."""
    return folder / f"{name}.{number:05d}.npy"


@dataclass(frozen=True, eq=False)
class Rows:
    """One step over all texts, rows × columns (or × heads × columns): an array of which only what is taken is read.

    `data[5:9]`, `data[-1]`, `data[[3, 8, 2]]` and `data[mask]` read those rows; `np.asarray(data)` reads all.

    Attributes:
        name: The step.
        shape: Rows first.
        text: Of every row the number of its text, from 0.
        position: Of every row its token's position in the text, from 0; 0 where a step has one row for a text.
        given: How many texts were read, those without a row among them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    text: Host
    position: Host
    starts: Host = field(repr=False)
    paths: Sequence[Path] = field(repr=False)
    ids: Rows | None = field(default=None, repr=False)
    given: int = field(default=0, repr=False)
    _open: dict[int, tuple[WeightsFile, Host]] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<Rows of {self.name}: {' × '.join(map(str, self.shape))} {self.dtype}, of {self.texts} texts>"

    @property
    def texts(self) -> int:
        """How many texts have a row."""
        return int(np.unique(self.text).size)

    @cached_property
    def token(self) -> Host:
        """Of every row its token's ID; −1 where a row stands for a text."""
        return np.full(len(self), -1) if self.ids is None else self.ids[:]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> Host:
        if copy is False:
            raise ValueError(f"{self.name} is in files: what is read of it is a copy")
        return self[:] if dtype is None else self[:].astype(dtype)

    def __getitem__(self, at: Any) -> Host:
        rest: tuple[Any, ...] = ()
        if isinstance(at, tuple):
            at, *others = at
            rest = tuple(others)
        wanted = self._wanted(at)
        single = wanted.ndim == 0
        rows, places = np.unique(wanted, return_inverse=True)
        values = self._read(rows)[places.reshape(-1)]
        values = values[0] if single else values.reshape(*wanted.shape, *self.shape[1:])
        return values[(slice(None),) * wanted.ndim + rest] if rest else values

    def _wanted(self, at: Any) -> Host:
        if isinstance(at, slice):
            return np.arange(*at.indices(len(self)))
        given = np.asarray(at)
        if given.dtype == np.bool_ and given.shape != (len(self),):
            raise IndexError(f"a mask of {given.shape} for {len(self)} rows of {self.name}")
        if given.dtype == np.bool_ or not given.size:
            return np.flatnonzero(given)
        if given.dtype.kind not in "iu" or given.min() < -len(self) or given.max() >= len(self):
            raise IndexError(f"{self.name} has rows 0 to {len(self) - 1}")
        return np.where(given < 0, given + len(self), given)

    def blocks(self, rows: int = 4096) -> Iterator[tuple[range, Host]]:
        """So many rows at a time, and which they are."""
        for start in range(0, len(self), rows):
            part = range(start, min(start + rows, len(self)))
            yield part, self[part.start : part.stop]

    def rows(self) -> Iterator[dict[str, Any]]:
        """A dictionary of text, position and token for every row."""
        columns = (self.text.tolist(), self.position.tolist(), self.token.tolist())
        return (dict(zip(("text", "position", "token"), each, strict=True)) for each in zip(*columns, strict=True))

    def _read(self, rows: Host) -> Host:
        """Rows in ascending order, each once."""
        out = np.empty((len(rows), *self.shape[1:]), self.dtype)
        ends = np.searchsorted(rows, self.starts)
        for number, (start, stop) in enumerate(pairwise(ends)):
            if stop > start:
                file, layout = self._file(number)
                own = rows[start:stop] - self.starts[number]
                out[start:stop] = file.rows(layout, own, np.asarray, self.name)
        return out

    def _file(self, number: int) -> tuple[WeightsFile, Host]:
        if number not in self._open:
            while len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            count = int(self.starts[number + 1] - self.starts[number])
            self._open[number] = _opened(self.paths[number], (count, *self.shape[1:]), self.dtype)
        return self._open[number]


def _opened(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[WeightsFile, Host]:
    """A file of at least so many rows; InputError where it holds something else."""
    file = WeightsFile(path)
    header = io.BytesIO(file.bytes(0, LONGEST_HEADER))
    try:
        known = np.lib.format.read_magic(header) == (1, 0)
        there, turned, kind = np.lib.format.read_array_header_1_0(header) if known else ((), True, None)
    except (ValueError, TypeError, SyntaxError, TokenError, MemoryError, RecursionError) as error:
        raise InputError(f"{path}: no array, or a damaged one") from error
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    begin = header.tell()
    if turned or kind != dtype or there[1:] != shape[1:] or there[:1] < shape[:1] or begin + size > file.size:
        raise InputError(f"{path}: not the array that {INDEX} says is there: record the steps again")
    return file, file.layout(begin, begin + size, dtype, shape)


@dataclass(frozen=True, eq=False)
class Recorded(Mapping[str, Rows]):
    """Steps that were recorded over texts, by name: `data["1.output"]`; the end of a name is enough."""

    folder: Path
    index: Index

    @classmethod
    def load(cls, folder: str | Path) -> Recorded:
        """Open what `record` wrote, be it all or not yet; only the index is read.

        Raises:
            InputError: There is none, or it is damaged.
        """
        place = expanded(folder)
        return cls(place, Index.read(place))

    def __repr__(self) -> str:
        more = "" if self.complete else ", not complete: record goes on"
        return f"<Recorded {self.folder}: {len(self)} steps over {self.texts:,} texts of {self.model}{more}>"

    @property
    def model(self) -> str:
        """The name of the model."""
        return str(self.index.settings.get("model", ""))

    @property
    def fingerprint(self) -> str:
        """A digest of its configuration and of all its weights."""
        return str(self.index.settings.get("fingerprint", ""))

    @property
    def texts(self) -> int:
        """How many texts were read."""
        return self.index.texts

    @property
    def complete(self) -> bool:
        """Whether these are all texts that were given."""
        return self.index.complete

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.index.arrays if not name.endswith(IDS))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Rows:
        found = one((*self.index.arrays, *self.index.aliases), name)
        return self._rows[self.index.aliases.get(found, found)]

    def __contains__(self, name: object) -> bool:
        """Whether `data[name]` gives something: a whole name, or the end of a single one."""
        names = (*self.index.arrays, *self.index.aliases)
        return isinstance(name, str) and (name in names or len(ending(names, name)) == 1)

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping: the default for a name that is of no step, and for the end of several."""
        return self[name] if name in self else default  # noqa: SIM401 - this is what it calls

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        places = {}  # of every sequence the text and position of its rows, and where each file begins
        for sequence, each in self.index.counts.items():
            counts = np.array(each, np.int64)
            before = np.concatenate([[0], counts.cumsum()])
            text = np.repeat(np.arange(len(counts)), counts)
            places[sequence] = text, np.arange(before[-1]) - before[text], before[[0, *self.index.stops]]
        rows, ids = dict[str, Rows](), dict[str, Rows]()
        for name in sorted(self.index.arrays, key=lambda name: not name.endswith(IDS)):  # which the others refer to
            kept = self.index.arrays[name]
            text, position, starts = places[kept.sequence]
            paths = [file_of(self.folder, name, number) for number in range(len(self.index.stops))]
            dtype, shape = np.dtype(kept.dtype).newbyteorder("<"), (len(text), *kept.shape)
            rows[name] = Rows(name, shape, dtype, text, position, starts, paths, ids.get(kept.sequence), self.texts)
            if name.endswith(IDS):
                ids[kept.sequence] = rows[name]
        return rows
