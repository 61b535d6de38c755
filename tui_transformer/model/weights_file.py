"""A file of weights that stays open, of which only the cells that are asked for are read; headers of safetensors.

Where cells lie is worked out on a mapping of the file, as NumPy's slices and transpositions are then those of an
array in memory. The mapping itself is never read: of a file that is cut meanwhile, that would end the process.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tui_transformer.engine.axis import Shape, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular
from tui_transformer.model.checks import shown

CHUNK = 1 << 22
"""Bytes that are read together where numbers have to be picked out or converted."""

Floats = Callable[[Host], Host]


class WeightsFile:
    """A file that is open for reading, as it was when it was opened.

    A file that is renamed to its name meanwhile changes nothing: the old one is read.
    """

    def __init__(self, path: Path) -> None:
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
        self.path, self._file, self._turn = path, file, threading.Lock()
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
        at = 0
        for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1) if len(rows) else ():
            first, count = int(run[0]), len(run)
            self._read(out[at : at + count], view[first : first + count], floats, what)
            at += count
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
        if high - low <= CHUNK or view.size == 1:
            data = np.empty(high - low, np.uint8)
            there = self._read_into(data, low - self._begin)
            start = view.__array_interface__["data"][0] - low
            out[...] = floats(np.ndarray(view.shape, view.dtype, data.data, start, view.strides))
            return there
        axis = next(i for i, size in enumerate(together.shape) if size > 1)
        halves = zip(np.array_split(room, 2, axis), np.array_split(together, 2, axis), strict=True)
        return all(self._fill(*half, floats) for half in halves)

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


# The header of a safetensors file: eight bytes say how long it is; it is a JSON object of `{"dtype", "shape",
# "data_offsets"}` by name; the data follow, each tensor's bytes beside those of the next. Nothing that it says is
# believed before it is checked.

LARGEST = 1 << 25
"""Bytes of a header; that of 300,000 tensors is no larger, and to read one of these takes no more than 1 GiB."""

MOST_AXES = 64
BITS: Mapping[str, int] = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
"""Of a number of each stored type; the bytes of other types are not checked, and those are never read."""

_POINTER = b"version https://git-lfs"


class _DamageError(ValueError):
    """A header that is wrong."""


class Entry(NamedTuple):
    """A tensor: its stored type, its shape, and its bytes in the file."""

    kind: str
    shape: Shape
    start: int
    stop: int


def read_header(file: WeightsFile) -> dict[str, Entry]:
    """The tensors of a safetensors file by name.

    Raises:
        InputError: The file is cut, or not what it says; the message names the tensor.
    """
    path, end = file.path, file.size
    try:
        header, begin = _header(file)
        entries = {name: _entry(name, value, begin) for name, value in header.items() if name != "__metadata__"}
        _check_places(entries, begin, end)
    except (OSError, _DamageError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: not a whole safetensors file ({reason}): copy it again") from error
    return entries


def _header(file: WeightsFile) -> tuple[dict[str, Any], int]:
    """The header of a file, and where its data begin."""
    first = file.bytes(0, len(_POINTER))
    if first == _POINTER:
        raise InputError(f"{file.path}: a pointer of Git LFS, not the weights: run git lfs pull in its folder")
    begin = 8 + int.from_bytes(first[:8], "little")
    if len(first) < 8 or begin > file.size:
        raise _DamageError(f"its header would end at byte {begin:,}, and the file has {file.size:,}")
    if begin - 8 > LARGEST:
        raise _DamageError(f"its header would have {begin - 8:,} bytes, more than {LARGEST:,}")
    try:
        content = json.loads(file.bytes(8, begin - 8).decode(), object_pairs_hook=_distinct)
    except _DamageError:
        raise
    except (ValueError, RecursionError) as error:
        raise _DamageError("its header is not JSON") from error
    if not isinstance(content, dict):
        raise _DamageError("its header is not a JSON object")
    return content, begin


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, where no name comes twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _DamageError(f"its header has {_short(twice)} twice")
    return content


def _entry(name: str, value: object, begin: int) -> Entry:
    """A tensor as the header has it, its bytes counted from the beginning of the file."""
    kind, shape, place = (
        value.get(key) if isinstance(value, dict) else None for key in ("dtype", "shape", "data_offsets")
    )
    if not isinstance(kind, str):
        raise _DamageError(f"tensor {_short(name)} has no dtype")
    if not _are_sizes(shape) or len(shape) > MOST_AXES:
        raise _DamageError(f"the shape of tensor {_short(name)} cannot be {shown(shape)}")
    if not _are_sizes(place) or len(place) != 2 or place[0] > place[1]:
        raise _DamageError(f"the data_offsets of tensor {_short(name)} cannot be {shown(place)}")
    given = place[1] - place[0]
    if kind in BITS and math.prod(shape) * BITS[kind] != given * 8:
        needed = math.prod(shape) * BITS[kind] // 8
        of = f"tensor {_short(name)} is {shape_text(tuple(shape[:8])) or 'one number'} of {kind}"
        raise _DamageError(f"{of}, which is {needed:,} bytes, but has {given:,}")
    return Entry(kind, tuple(shape), begin + place[0], begin + place[1])


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(size) is int and 0 <= size < 1 << 63 for size in value)


def _check_places(entries: Mapping[str, Entry], begin: int, end: int) -> None:
    """Raise unless the tensors lie side by side from the first byte of the data to the last."""
    first, last = Entry("", (), begin, begin), Entry("", (), end, end)
    placed = sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop))
    for (one, before), (other, after) in pairwise([("", first), *placed, ("", last)]):
        if before.stop > end:
            raise _DamageError(f"tensor {_short(one)} ends at byte {before.stop:,}, and the file has {end:,}")
        if before.stop > after.start:
            raise _DamageError(f"tensors {_short(one)} and {_short(other)} overlap")
        if before.stop < after.start:
            gap = f"bytes {before.stop:,} to {after.start:,} are of no tensor"
            raise _DamageError(f"{gap}, before tensor {_short(other)}" if other else f"{gap}, at the end")


def _short(name: str) -> str:
    return name if name.isprintable() and len(name) <= 100 else shown(name)
