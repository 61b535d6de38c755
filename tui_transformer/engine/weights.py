"""Weights by name: made or read at first use, held on the device in the backend's precision."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.compact import StoredMatrix
from tui_transformer.engine.explanation import Index, Working
from tui_transformer.engine.parts import MEBIBYTE, check_memory
from tui_transformer.errors import InputError
from tui_transformer.machine import available_memory
from tui_transformer.records import dataclass, field, replace

Reader = Callable[[str, Shape], Host]
"""Gives a weight of this name and shape as a host array."""

LARGE = 1 << 22
PANEL = 1 << 19
"""Cells of a matrix that are made together (2 MiB in float32): they are still in the cache when they are multiplied."""
SMALL = MEBIBYTE

SPARE = 0.25
"""So much of what the weights take is left free."""

FREE = 4
"""What is free is so many times what matrices take that need not be held, or they are not."""


class Stored(Protocol):
    """The file that weights are read from."""

    def part(self, name: str, index: Any) -> Host:
        """The cells of a weight at an index of slices, or rows by ascending numbers, as floats; no others are read."""

    def explain(self, name: str, index: Index) -> tuple[str, Working] | None:
        """How a cell of a weight is made of what is stored, as formula and terms; None where it is stored itself."""


class Loaded(Protocol):
    """What was opened or made: a model."""

    @property
    def weights(self) -> Weights:
        """Its weights."""


@dataclass(frozen=True, eq=False)
class Weights:
    """A weight is asked for by name and shape; the first time it is read and put on the device, then held.

    Where memory is short, those of a file are let go and read again: a model may be larger than memory. Of a weight of
    a file with more than `large` cells a part is read alone, as long as nobody has asked for the whole; products read a
    matrix of more than `most` so each time, and on the CPU one that is `packed`, some columns at a time, the first time
    or where memory is short. For less than `small` bytes the system is not asked what is free. Some names may be those
    of `others`. Pickled, they are only how they are opened or made `again`.
    """

    backend: Backend
    read: Reader
    held: dict[str, Array] = field(default_factory=dict)
    file: Stored | None = None
    large: int = LARGE
    small: int = SMALL
    most: float = math.inf
    packed: Callable[[str], bool] = lambda _: False
    others: Mapping[str, Weights] = field(default_factory=dict)
    again: Callable[[], Loaded] | None = field(default=None, repr=False)
    _given: frozenset[str] = field(init=False, repr=False)
    _asked: dict[str, int] = field(init=False, repr=False, default_factory=dict)
    _groups: dict[str, Mapping[str, Shape]] = field(init=False, repr=False, default_factory=dict)
    _rooms: dict[str, Array] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_given", frozenset(self.held))

    def beside(self, other: Weights, names: Iterable[str], again: Callable[[], Loaded] | None) -> Weights:
        """The same, what is held included, and by these names the weights of another file; made `again` so."""
        both = replace(self, others={**self.others, **dict.fromkeys(names, other)}, again=again)
        object.__setattr__(both, "_given", self._given)
        return both

    def __reduce__(self) -> tuple[Callable[[Callable[[], Loaded]], Weights], tuple[Callable[[], Loaded]]]:
        return _weights_of, (self.opened_again(),)

    def opened_again(self) -> Callable[[], Loaded]:
        """What opens or makes them in another process; InputError where they are in memory alone."""
        if self.again is None:
            raise InputError("these weights are in memory alone: save the model in a folder, and load it from there")
        return self.again

    def let_go(self) -> None:
        """Hold no weight any more that can be read or made again; those that were given from the beginning stay."""
        for each in (self, *self.others.values()):
            for name in each.held.keys() - each._given:
                each.held.pop(name, None)
            each._asked.clear()
            each._rooms.clear()

    def get(self, name: str, shape: Shape) -> Array:
        """The weight on the device.

        Raises:
            InputError: It does not fit into memory, or the file is damaged.
        """
        if name in self.others:
            return self.others[name].get(name, shape)
        weight = self.held.get(name)  # once: another thread may let go
        if weight is None:
            self._make_room(name, shape)
            weight = self.held[name] = self._placed(name, self.backend.floats(self.read(name, shape)))
        return weight

    def read_together(self, group: Mapping[str, Shape]) -> None:
        """Lay matrices of as many rows side by side in memory when they are read, so that one product can read all.

        Where one of them is held already, nothing is changed.
        """
        if self.backend.device == "cpu" and not any(name in self.held or name in self.others for name in group):
            self._groups.update(dict.fromkeys(group, group))

    def _placed(self, name: str, weight: Array) -> Array:
        """A weight that was just read, in its place among those that it is read together with."""
        group = self._groups.get(name, {})
        if name not in self._rooms and group and self.held.keys().isdisjoint(group):
            rows, ends = len(weight), np.cumsum([columns for _, columns in group.values()])
            turned = weight.flags.f_contiguous
            room = np.empty((ends[-1], rows) if turned else (rows, ends[-1]), weight.dtype)
            self._rooms.update(zip(group, np.split(room.T if turned else room, ends[:-1], axis=1), strict=True))
        placed = self._rooms.pop(name, None)
        if placed is None:
            return weight
        placed[...] = weight
        return placed

    def operand(self, name: str, shape: Shape) -> Array | StoredMatrix:
        """The weight as products read it: one that is too large to be held is read in blocks."""
        if name in self.others:
            return self.others[name].operand(name, shape)
        packed = self._packed(name, shape)
        whole = len(shape) != 2 or math.prod(shape) <= self.most or not self.apart(name, shape)
        if self._worth_holding(name, shape) if packed else whole:
            return self.get(name, shape)
        panel = max(16, PANEL // shape[0] // 16 * 16) if packed else None
        rows, columns = map(range, shape)
        return StoredMatrix(partial(self.part, name, shape), rows, columns, panel)

    def _packed(self, name: str, shape: Shape) -> bool:
        """Whether a matrix need not be held: products read it some columns at a time, which are made then."""
        at_hand = len(shape) != 2 or name in self.held or self.backend.device != "cpu"
        return not at_hand and self.packed(name)

    def _worth_holding(self, name: str, shape: Shape) -> bool:
        """Whether a matrix that is packed is asked for again, and all of them together are little beside what is free.

        To make it costs several times what it costs to read it from memory: with one token, nearly all of a pass.
        """
        again = name in self._asked
        self._asked[name] = self._taken(shape)
        asked = [*self._asked.items()]  # once: another thread may ask, too
        return again and FREE * sum(size for each, size in asked if each not in self.held) < available_memory()

    def _make_room(self, name: str, shape: Shape) -> None:
        """Let go of weights that can be read again, the oldest first, as long as there is too little memory."""
        needed = self._taken(shape)
        if needed < self.small:
            return
        old = {other: array.nbytes for other, array in [*self.held.items()] if self._taken(array.shape) >= self.small}
        held = sum(old.values())
        for other, size in old.items():
            if needed + (needed + held) * SPARE < available_memory():
                return
            for each in self._groups.get(other, (other,)):  # all of a piece of memory: less of it gives nothing back
                self.held.pop(each, None)
                self._rooms.pop(each, None)
            held -= size
        check_memory(needed, f"{name} takes", "close other programs, or use a smaller model")

    def _taken(self, shape: Shape) -> int:
        """Bytes of memory that a weight of a file takes once it is read; on a GPU, none of the computer's."""
        if self.file is None or self.backend.device != "cpu":
            return 0
        return math.prod(shape) * self.backend.dtype.itemsize

    def apart(self, name: str, shape: Shape) -> bool:
        """Whether a part of a weight can be had for less than the whole."""
        if name in self.others:
            return self.others[name].apart(name, shape)
        large = math.prod(shape) > self.large or self._packed(name, shape)
        return self.file is not None and name not in self.held and large

    def part(self, name: str, shape: Shape, index: Any) -> Array:
        """The cells of a weight at an index, on the device; of one that can be had apart, nothing else is read."""
        if name in self.others:
            return self.others[name].part(name, shape, index)
        if self.file is None or not self.apart(name, shape):
            return self.get(name, shape)[index]
        return self.backend.floats(self.file.part(name, index))

    def explain(self, name: str, index: Index) -> tuple[str, Working] | None:
        """How a cell of a weight is made of what its file stores; None where it is stored itself, or was made here."""
        if name in self.others:
            return self.others[name].explain(name, index)
        return None if self.file is None else self.file.explain(name, index)

    def looked_up(self, name: str, shape: Shape, ids: Array) -> tuple[Array, Array]:
        """The IDs as places among the rows of a table that they name, and those rows."""
        rows, places = np.unique(self.backend.to_host(ids), return_inverse=True)
        return self.backend.integers(places.reshape(ids.shape)), self.part(name, shape, rows)

    def check_room(self, wanted: Mapping[str, Shape]) -> None:
        """Raise InputError where weights do not fit into memory together."""
        held = self.held.keys() | self.others.keys()
        left = ((name, shape) for name, shape in wanted.items() if name not in held)
        needed = sum(self._taken(shape) for name, shape in left if not self._packed(name, shape))
        if needed >= self.small:
            check_memory(needed, f"the weights take, as {self.backend.dtype},", "use a smaller model")


def side_by_side(parts: Sequence[Array]) -> Array | None:
    """The matrix whose columns these are, one part behind the other in memory; None where there is none."""
    base = getattr(parts[0], "base", None)
    if not isinstance(base, np.ndarray) or any(getattr(part, "base", None) is not base for part in parts):
        return None
    whole = base if base.shape[0] == len(parts[0]) else base.T
    ends = np.cumsum([part.shape[-1] for part in parts])
    if whole.shape != (len(parts[0]), ends[-1]):
        return None
    cuts = zip(parts, np.split(whole, ends[:-1], axis=1), strict=True)
    alike = all(part.ctypes.data == cut.ctypes.data and part.strides == cut.strides for part, cut in cuts)
    return whole if alike else None


def _weights_of(load: Callable[[], Loaded]) -> Weights:
    return load().weights


def random_weights(seed: int, deviation: float = 0.2) -> Reader:
    """Weights normal(0, deviation); γ of a norm is 1 and β is 0.

    Every weight has its own stream, from the seed and its name: changing one size leaves the other weights as they
    are. Values are drawn in float32, so that a float64 model has the same ones.
    """
    import numpy.random  # noqa: F401 - its import loses an interrupt: not where something is written already

    def read(name: str, shape: Shape) -> Host:
        if name.endswith(".norm.weight"):
            return np.ones(shape, dtype=np.float32)
        if name.endswith(".norm.bias"):
            return np.zeros(shape, dtype=np.float32)
        stream = np.random.default_rng([seed, zlib.crc32(name.encode())])
        return stream.standard_normal(shape, dtype=np.float32) * np.float32(deviation)

    return read
