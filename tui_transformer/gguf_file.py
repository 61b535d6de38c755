"""GGUF files of llama.cpp: the metadata, and where the tensors lie. No tensor is read here.

The format is that of "GGUF" in the documentation of ggml, versions 2 and 3: a magic word, the version, how many
tensors and entries there are; entries of a name, a type and a value; the name, sizes (the fastest first), type and
offset of every tensor; then the data, aligned. What a file says is checked against its size before it is believed.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tui_transformer.errors import InputError
from tui_transformer.files import check_regular, is_file
from tui_transformer.records import dataclass

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
MOST_TENSORS, MOST_ENTRIES, MOST_AXES, DEEPEST = 1 << 16, 1 << 16, 8, 4
LARGEST_HEADER = 1 << 27
"""Bytes in front of the data; a vocabulary of 256,000 tokens takes some 10 million."""

MOST_VALUES = 1 << 22
"""Texts and lists in all lists together; a vocabulary of 256,000 tokens has a million with its merges."""

STRING, ARRAY, FLOAT32 = 8, 9, 6
NUMBERS: Mapping[int, str] = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    FLOAT32: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
"""Types of values that are numbers."""


@dataclass(frozen=True)
class Entry:
    """A tensor of the file.

    Attributes:
        kind: Its type, by the number that the format gives it.
        shape: The slowest axis first.
        start: Its first byte.
    """

    kind: int
    shape: tuple[int, ...]
    start: int


@dataclass(frozen=True, eq=False)
class GgufFile:
    """Contents of a file.

    Attributes:
        metadata: Name → value; numbers, texts, lists of texts, arrays.
        tensors: Name → where it is.
        size: Bytes of the file.
        begin: The first byte behind the header, where the first tensor is.
        alignment: Every tensor begins at a multiple of so many bytes behind that.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Entry]
    size: int
    begin: int = 0
    alignment: int = ALIGNMENT

    @property
    def architecture(self) -> str:
        """The name of the architecture in llama.cpp; "" where the file does not say."""
        architecture = self.metadata.get("general.architecture")
        return architecture if isinstance(architecture, str) else ""


def is_gguf(path: Path) -> bool:
    """Whether a file begins as a GGUF file, whatever its name; Ollama's have no ending."""
    if not is_file(path):
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_gguf(path: Path) -> GgufFile:
    """Read the metadata of a GGUF file, and where its tensors are.

    Raises:
        InputError: The file is missing, cut, or not what it says.
    """
    check_regular(path)
    try:
        status = path.stat()
        return _opened(path, status.st_size, status.st_mtime_ns)
    except _DamageError as error:
        raise InputError(f"{path}: no GGUF file that can be read: {error}: copy it again") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}: it cannot be opened") from error


@functools.lru_cache(maxsize=2)
def _opened(path: Path, size: int, changed: int) -> GgufFile:
    """The file as it was at that time: settings, tensors and vocabulary are asked for one after the other."""
    del changed
    with path.open("rb") as file:
        return _read(path, _Bytes(file, size))


class _DamageError(Exception):
    """The file cannot be as it is."""


class _Bytes:
    """The bytes of a file in order, never more than it has."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.size, self.at, self.values, self._file = size, 0, 0, file

    def take(self, count: int) -> bytes:
        if count > self.size - self.at:
            raise _DamageError(f"it ends at byte {self.size:,}, inside its header")
        self.at += count
        if self.at > LARGEST_HEADER:
            raise _DamageError(f"its header is longer than {LARGEST_HEADER:,} bytes")
        data = self._file.read(count)
        if len(data) < count:
            raise _DamageError("it was cut while it was read")
        return data

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count_values(self, count: int) -> None:
        """Count the values of a list, each of which takes memory of its own, however few bytes it has."""
        self.values += count
        if self.values > MOST_VALUES:
            raise _DamageError(f"its lists have {self.values:,} texts and lists, and {MOST_VALUES:,} are read")

    def text(self) -> str:
        return self.take(self.number("<Q")).decode("utf-8", "replace")


def _read(path: Path, data: _Bytes) -> GgufFile:
    if data.take(4) != MAGIC:
        raise _DamageError("it does not begin with GGUF")
    version = data.number("<I")
    if version not in VERSIONS:
        if int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
            raise InputError(f"{path}: its numbers are big-endian: get or make the file with little-endian ones")
        raise InputError(f"{path}: its version of GGUF is {version:,}: get or make it as version 2 or 3")
    tensors, entries = data.number("<Q"), data.number("<Q")
    if tensors > MOST_TENSORS or entries > MOST_ENTRIES:
        raise _DamageError(f"it says that it has {tensors:,} tensors and {entries:,} entries")
    metadata = {data.text(): _value(data, data.number("<I")) for _ in range(entries)}
    listed = [_tensor(data) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise _DamageError(f"its alignment is {str(alignment)[:40]}")
    begin = -(-data.at // alignment) * alignment
    if len({name for name, *_ in listed}) < tensors:
        raise _DamageError("two tensors have one name")
    placed = {name: Entry(kind, shape, begin + offset) for name, shape, kind, offset in listed}
    return GgufFile(path, metadata, placed, data.size, begin, alignment)


def _tensor(data: _Bytes) -> tuple[str, tuple[int, ...], int, int]:
    name, axes = data.text(), data.number("<I")
    if axes > MOST_AXES:
        raise _DamageError(f"tensor {name[:60]!r} has {axes:,} axes")
    shape = tuple(data.number("<Q") for _ in range(axes))[::-1]
    if max(math.prod(shape), *shape, 0) > data.size * 64:
        raise _DamageError(f"tensor {name[:60]!r} is {' × '.join(map(str, shape))}")
    return name, shape, data.number("<I"), data.number("<Q")


def _value(data: _Bytes, kind: int, depth: int = 0) -> Any:
    if kind == STRING:
        return data.text()
    if kind == ARRAY:
        return _array(data, depth)
    if kind not in NUMBERS:
        raise _DamageError(f"a value has the type {kind}, which is not known")
    number = np.frombuffer(data.take(np.dtype(NUMBERS[kind]).itemsize), NUMBERS[kind])[0]
    return float(str(number)) if kind == FLOAT32 else number.item()  # 1e-05 is meant, not 9.99999974737875e-06


def _array(data: _Bytes, depth: int) -> Any:
    kind, count = data.number("<I"), data.number("<Q")
    if count > data.size:
        raise _DamageError(f"a list has {count:,} values")
    if kind in NUMBERS:
        return np.frombuffer(data.take(count * np.dtype(NUMBERS[kind]).itemsize), NUMBERS[kind])
    if kind == ARRAY and depth >= DEEPEST:
        raise _DamageError("lists are in lists in lists")
    data.count_values(count)
    read: Callable[[], Any] = data.text if kind == STRING else lambda: _value(data, kind, depth + 1)
    return [read() for _ in range(count)]
