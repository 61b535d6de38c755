"""A matrix that is too large to be held: a product reads what it needs of it, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Array, Backend, Host

BLOCK = 1 << 24
"""Cells that are read together (64 MiB in float32)."""


@dataclass(frozen=True, eq=False)
class StoredMatrix:
    """A matrix in a file, or a part of it.

    Attributes:
        read: Gives cells of the whole on the device, by a pair of slices, or rows by ascending numbers.
        rows: Those that it has of the whole.
        columns: The same.
    """

    read: Callable[[Any], Array]
    rows: range
    columns: range

    @property
    def shape(self) -> Shape:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def __getitem__(self, index: tuple[slice, slice]) -> StoredMatrix:
        return replace(self, rows=self.rows[index[0]], columns=self.columns[index[1]])

    def product(self, backend: Backend, x: Array) -> Array:
        """What x makes of it, n × a → n × b; of a tall one no rows are read for which x is 0 everywhere."""
        out = backend.xp.zeros_like(backend.empty((len(x), self.shape[1]), x.dtype))
        read = None if self._wide else np.flatnonzero(backend.to_host((x != 0).any(axis=0)))
        for rows, columns, cells in self._blocks(backend, read):
            out[:, columns] += backend.xp.matmul(x[:, rows], cells)
        return out

    def product_back(self, backend: Backend, gradient: Array) -> Array:
        """The gradient times its transpose, n × b → n × a."""
        out = backend.xp.zeros_like(backend.empty((len(gradient), self.shape[0]), gradient.dtype))
        for rows, columns, cells in self._blocks(backend, None):
            out[:, rows] += backend.xp.matmul(gradient[:, columns], cells.swapaxes(0, 1))
        return out

    @property
    def _wide(self) -> bool:
        return len(self.columns) > len(self.rows)

    def _blocks(self, backend: Backend, chosen: Host | None) -> Iterator[tuple[Any, Any, Array]]:
        """Rows and columns that are read together, by their places here, with their cells; all or the chosen rows."""
        long, short = (self.columns, self.rows) if self._wide else (self.rows, self.columns)
        step, whole = max(BLOCK // max(len(short), 1), 1), slice(0, len(short))
        for start in range(0, len(long) if chosen is None else len(chosen), step):
            part = slice(start, min(start + step, len(long)))
            if chosen is not None:
                places = chosen[start : start + step]
                yield backend.integers(places), whole, self.read(self.rows.start + places)[:, _slice(self.columns)]
            elif self._wide:
                yield whole, part, self.read((_slice(self.rows), _slice(self.columns[part])))
            else:
                yield part, whole, self.read((_slice(self.rows[part]), _slice(self.columns)))


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)
