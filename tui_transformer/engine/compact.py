"""Arrays that are not there whole: a matrix too large to be held, and one of which the cells are held that are not 0.

Of the first a product reads what it needs, a block at a time. The second is what is active of a dictionary of features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.machine import cores, on_cores
from tui_transformer.records import dataclass, replace

BLOCK = 1 << 24
"""Cells that are read together (64 MiB in float32)."""
WORTH = 0.5
"""Of the bytes of a whole array: what takes more so is held whole."""
FEW = 32
"""Rows whose product with a panel takes no longer than to make it: cores share panels then, and not each product."""
TAKERS = 4
"""Cores that share panels, at most: what is Python in making one is done by one at a time."""
ALONE = 1 << 19
"""Rows × inner × columns from which OpenBLAS shares a product among its threads."""
ACROSS = 64
"""Columns of a product that is left to one thread."""


@dataclass(frozen=True, eq=False)
class StoredMatrix:
    """A matrix in a file, or a part of it.

    Attributes:
        read: Gives cells of the whole on the device, by a pair of slices, or rows by ascending numbers.
        rows: Those that it has of the whole.
        columns: The same.
        panel: How many columns are read together; None where it is read by its longer side, as much as a block.
    """

    read: Callable[[Any], Array]
    rows: range
    columns: range
    panel: int | None = None

    @property
    def shape(self) -> Shape:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def __getitem__(self, index: tuple[slice, slice]) -> StoredMatrix:
        return replace(self, rows=self.rows[index[0]], columns=self.columns[index[1]])

    def product(self, backend: Backend, x: Array) -> Array:
        """What x makes of it, n × a → n × b; of a tall one no rows are read for which x is 0 everywhere."""
        if self.panel is not None and len(x) <= FEW:
            takers = min(cores(), TAKERS, -(-self.shape[1] // self.panel))
            if takers > 1:
                return self._shared_product(x, self.panel, takers)
        out = backend.xp.zeros_like(backend.empty((len(x), self.shape[1]), x.dtype))
        read = None if self._wide else np.flatnonzero(backend.to_host((x != 0).any(axis=0)))
        for rows, columns, cells in self._blocks(backend, read):
            out[:, columns] += backend.xp.matmul(x[:, rows], cells)
        return out

    def _shared_product(self, x: Host, panel: int, takers: int) -> Host:
        """The same, each core making panels and multiplying with them, as NumPy makes one on one core alone."""
        out = np.empty((len(x), self.shape[1]), x.dtype)
        starts = iter(range(0, self.shape[1], panel))  # one for all threads: each takes the next

        def multiply() -> None:
            for start in starts:
                part = slice(start, start + panel)
                out[:, part] = _product_alone(x, self.read((_slice(self.rows), _slice(self.columns[part]))))

        on_cores(takers, multiply)
        return out

    def product_back(self, backend: Backend, gradient: Array) -> Array:
        """The gradient times its transpose, n × b → n × a."""
        out = backend.xp.zeros_like(backend.empty((len(gradient), self.shape[0]), gradient.dtype))
        for rows, columns, cells in self._blocks(backend, None):
            out[:, rows] += backend.xp.matmul(gradient[:, columns], cells.swapaxes(0, 1))
        return out

    @property
    def _wide(self) -> bool:
        return self.panel is not None or len(self.columns) > len(self.rows)

    def _blocks(self, backend: Backend, chosen: Host | None) -> Iterator[tuple[Any, Any, Array]]:
        """Rows and columns that are read together, by their places here, with their cells; all or the chosen rows."""
        long, short = (self.columns, self.rows) if self._wide else (self.rows, self.columns)
        step, whole = self.panel or max(BLOCK // max(len(short), 1), 1), slice(0, len(short))
        for start in range(0, len(long) if chosen is None else len(chosen), step):
            part = slice(start, min(start + step, len(long)))
            if chosen is not None:
                places = chosen[start : start + step]
                yield backend.integers(places), whole, self.read(self.rows.start + places)[:, _slice(self.columns)]
            elif self._wide:
                yield whole, part, self.read((_slice(self.rows), _slice(self.columns[part])))
            else:
                yield part, whole, self.read((_slice(self.rows[part]), _slice(self.columns)))


def _product_alone(x: Host, cells: Host) -> Host:
    """The product, in ones so small that each stays on this thread: two that want all would wait for each other."""
    rows, inner, columns = *x.shape, cells.shape[1]
    across = math.gcd(columns, ACROSS)
    parts = next(n for n in range(1, inner + 1) if inner % n == 0 and rows * inner * across < ALONE * n)
    left = x.reshape(rows, 1, parts, inner // parts).transpose(2, 1, 0, 3)
    right = cells.reshape(parts, inner // parts, columns // across, across).swapaxes(1, 2)
    product: Host = np.matmul(left, right).sum(axis=0).swapaxes(0, 1).reshape(rows, columns)
    return product


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)


@dataclass(frozen=True, eq=False)
class SparseArray:
    """An array that is nearly all 0; what of it is read is an array as any other.

    Attributes:
        shape: Of the whole, with its batch axis.
        places: Of the cells that are not 0 among all, counted row by row; ascending.
        cells: Their values.
    """

    backend: Backend
    shape: Shape
    places: Array
    cells: Array

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return int(self.places.nbytes + self.cells.nbytes)

    def __getitem__(self, index: slice | tuple[slice, ...]) -> Array:
        """The cells of slices of the axes; none are looked at but those of the rows between."""
        xp, ranges = self.backend.xp, _ranges(self.shape, index)
        out = xp.zeros(tuple(map(len, ranges)), dtype=self.cells.dtype)
        if out.size:
            ends = [int(np.ravel_multi_index([each[end] for each in ranges], self.shape)) for end in (0, -1)]
            part = slice(*xp.searchsorted(self.places, xp.asarray([ends[0], ends[1] + 1])).tolist())
            found = xp.unravel_index(self.places[part], self.shape)
            inside = xp.ones(found[0].shape, dtype=np.bool_)
            for axis, each in zip(found, ranges, strict=True):
                inside &= (axis >= each.start) & (axis < each.stop)
            at = tuple(axis[inside] - each.start for axis, each in zip(found, ranges, strict=True))
            out[at] = self.cells[part][inside]
        return out


def packed(backend: Backend, shape: Shape, parts: Iterable[tuple[slice | tuple[slice, ...], Array]]) -> SparseArray:
    """An array from parts of it, each with the slices where it stands."""
    xp, kind = backend.xp, np.int32 if math.prod(shape) < np.iinfo(np.int32).max else np.int64
    places, cells = [xp.zeros(0, dtype=kind)], [backend.floats([])]
    for index, part in parts:
        found = xp.nonzero(part)
        at = tuple(axis + each.start for axis, each in zip(found, _ranges(shape, index), strict=True))
        places.append(xp.ravel_multi_index(at, shape).astype(kind))
        cells.append(part[found])
    joined, values = xp.concatenate(places), xp.concatenate(cells)
    order = slice(None) if len(places) == 2 else xp.argsort(joined)
    return SparseArray(backend, shape, joined[order], values[order])


def dense(value: Array | SparseArray) -> Array:
    """An array as operations read it."""
    if not isinstance(value, SparseArray):
        return value
    out = value.backend.xp.zeros(math.prod(value.shape), dtype=value.cells.dtype)
    out[value.places] = value.cells
    return out.reshape(value.shape)


def some_of(value: Array | SparseArray, items: slice) -> Array | SparseArray:
    """Some items of a batch."""
    part = value[items]
    return packed(value.backend, part.shape, [((), part)]) if isinstance(value, SparseArray) else part


def _ranges(shape: Shape, index: slice | tuple[slice, ...]) -> list[range]:
    """The indices of every axis that slices take, of those that are not named all."""
    named = index if isinstance(index, tuple) else (index,)
    return [range(size)[part] for size, part in zip(shape, chain(named, repeat(slice(None))), strict=False)]
