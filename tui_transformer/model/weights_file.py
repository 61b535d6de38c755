"""A file of weights that stays open, and of which only the cells that are asked for are read.

Where cells lie is worked out on a mapping of the file, as NumPy's slices and transpositions are then those of an
array in memory. The mapping itself is never read: of a file that is cut meanwhile, that would end the process.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular

CHUNK = 1 << 22
"""Bytes that are read together where numbers have to be picked out or converted."""

Floats = Callable[[Host], Host]


class WeightsFile:
    """A file that is open for reading, as it was when it was opened.

    A file that is renamed to its name meanwhile changes nothing: the old one is read.

    Attributes:
        chunk: Bytes that are read together where numbers have to be picked out or converted.
    """

    def __init__(self, path: Path, chunk: int = CHUNK) -> None:
        """Open a file; nothing of it is read.

        Raises:
            InputError: It is missing, empty, no regular file, or not readable.
        """
        check_regular(path)
        try:
            file = path.open("rb", buffering=0)
            weakref.finalize(self, file.close)
            self._stamp = _stamp(file.fileno())
            mapped: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else b""
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}: it cannot be opened") from error
        self.path, self.chunk, self._file, self._turn = path, chunk, file, threading.Lock()
        self._mapping = np.frombuffer(mapped, np.uint8)
        self._begin = self._mapping.ctypes.data

    @property
    def size(self) -> int:
        """Bytes of the file when it was opened."""
        return self._stamp[0]

    def bytes(self, start: int, count: int) -> bytes:
        """The bytes at a place, fewer at the end of the file."""
        with self._turn:
            self._file.seek(start)
            return self._file.read(count)

    def layout(self, start: int, stop: int, dtype: np.dtype[Any], shape: Shape) -> Host:
        """Numbers in the file as an array that says where they lie, to be sliced and turned, but never read."""
        return self._mapping[start:stop].view(dtype).reshape(shape)

    def numbers(self, view: Host, floats: Floats, what: str) -> Host:
        """The numbers of a view of a layout, in the order in memory that they have in the file.

        Args:
            view: A view of what `layout` gives; numbers that were copied from it are taken as they are.
            floats: Makes floats of stored numbers.
            what: What they are, for a message.

        Raises:
            InputError: The file was cut or written to since it was opened.
        """
        if not np.may_share_memory(view, self._mapping):
            return floats(view)
        out = np.empty_like(view, dtype=floats(np.empty(0, view.dtype)).dtype, subok=False)
        self._read(out, view, floats, what)
        return out

    def rows(self, view: Host, rows: Host, floats: Floats, what: str) -> Host:
        """The same of the rows that these numbers name, each once and in ascending order."""
        out = np.empty((len(rows), *view.shape[1:]), floats(np.empty(0, view.dtype)).dtype)
        if len(rows) and rows[-1] >= len(view):
            raise IndexError(f"row {rows[-1]} of {len(view)}")
        for at, first, count in _runs(rows):
            self._read(out[at : at + count], view[first : first + count], floats, what)
        return out

    def _read(self, out: Host, view: Host, floats: Floats, what: str) -> None:
        try:
            whole = self._fill(out, view, floats) and _stamp(self._file.fileno()) == self._stamp
        except OSError as error:
            raise InputError(f"{self.path}: {what} cannot be read: {error.strerror}") from error
        if not whole:
            was = "cut" if os.fstat(self._file.fileno()).st_size < self.size else "written to"
            raise InputError(f"{self.path}: {was} while it was open, {what} is lost: copy the file again and open it")

    def _fill(self, out: Host, view: Host, floats: Floats) -> bool:
        """Fill an array with the numbers of a view; False where the file has fewer."""
        if not view.size:
            return True
        low, high = byte_bounds(view)
        order = np.argsort([-stride for stride in view.strides], kind="stable")
        together, room = view.transpose(order), out.transpose(order)
        if floats is np.asarray and together.flags.c_contiguous and room.flags.c_contiguous:
            return self._read_into(room.reshape(-1).view(np.uint8), low - self._begin)
        if high - low <= self.chunk or view.size == 1:
            data = np.empty(high - low, np.uint8)
            there = self._read_into(data, low - self._begin)
            start = view.__array_interface__["data"][0] - low
            out[...] = floats(np.ndarray(view.shape, view.dtype, data.data, start, view.strides))
            return there
        return all(self._fill(room[half], together[half], floats) for half in _halves(together.shape))

    def _read_into(self, room: Host, start: int) -> bool:
        """Fill bytes from a place of the file on; False where there are fewer."""
        with self._turn:
            self._file.seek(start)
            while len(room):
                count = self._file.readinto(room.data)
                if not count:
                    return False
                room = room[count:]
        return True


def _stamp(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


def _runs(rows: Host) -> Iterator[tuple[int, int, int]]:
    """Rows that follow each other: where in the list, the first, how many."""
    ends = np.flatnonzero(np.diff(rows) != 1) + 1
    for part in np.split(np.arange(len(rows)), ends):
        if len(part):
            yield int(part[0]), int(rows[part[0]]), len(part)


def _halves(shape: Shape) -> tuple[Any, Any]:
    axis = next(i for i, size in enumerate(shape) if size > 1)
    before, half = (slice(None),) * axis, shape[axis] // 2
    return (*before, slice(half)), (*before, slice(half, None))
