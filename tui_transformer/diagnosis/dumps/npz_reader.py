"""Reading arrays from NPY and NPZ files of any origin: nothing is unpickled, no header is believed.

Of an NPZ file the list of names is read, then the beginnings of arrays; nothing else is inflated before it is asked
for, and then never more than the shape says.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular
from tui_transformer.machine import available_memory, readable
from tui_transformer.records import dataclass, field
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

VALUE, TEXT = "value/", "a text"
"""The prefix of the steps in a file that holds more than the steps."""

IDS, DECODER_IDS = ("tokens", "input_ids"), ("decoder.tokens", "decoder_input_ids")
"""Entries of the token IDs that a trace was made from."""

MASKS = ("attention_mask", "padding")
"""Entries that say which tokens are real: no steps."""

RUN = 1 << 20
"""Numbers that are read at a time."""

PIECE = 1 << 20
"""Bytes that are inflated at a time, so that a signal is heeded in between."""

MOST_ARRAYS, LARGEST_LIST = 1 << 16, 1 << 24
"""Arrays of a file, and bytes of the list of their names."""

MOST_IDS = 1 << 24
"""Token IDs, or marks of tokens."""

LONGEST_HEADER, MOST_AXES, LONGEST_AXIS = 10_000, 32, 1 << 48
PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How NumPy packs arrays; other ways may take much memory to undo."""

BFLOAT16 = np.dtype("V2")
"""How NumPy writes bf16, which it does not know."""

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Header(NamedTuple):
    """Header of an array; `fortran`: the first axis runs fastest."""

    shape: Shape
    fortran: bool
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class TraceFile:
    """The arrays of a file by name; each is read when it is asked for, or `run` numbers at a time.

    InputError is raised for one that is damaged, too large, or holds no numbers.
    """

    path: Path
    entries: Mapping[str, str]
    archive: zipfile.ZipFile = field(repr=False)
    run: int = RUN

    @property
    def names(self) -> tuple[str, ...]:
        """The steps, in the order of the file."""
        steps = tuple(name for name in self.entries if name.startswith(VALUE))
        return tuple(name.removeprefix(VALUE) for name in steps) or tuple(
            name for name in self.entries if name not in MASKS
        )

    def shape(self, name: str) -> Shape:
        """The shape of one array."""
        with self._opened(name) as (_, header):
            return header.shape

    def read(self, name: str, most: int | None = None) -> Host:
        """One array of numbers, of at most so many."""
        with self._opened(name) as (member, header):
            return numbers(member, header, f"{shown_path(self.path)}: {visible(name)}", most)

    def cells(self, name: str) -> Iterator[Host]:
        """The numbers of one array in order, in runs of at most `run`: however large it is, little memory is taken.

        Where its first axis runs fastest, it is read whole.
        """
        with self._opened(name) as (member, header):
            if header.fortran:
                yield self.read(name).reshape(-1)
                return
            left = math.prod(header.shape)
            while left:
                size = min(left, self.run)
                yield np.frombuffer(_whole(member, size * header.dtype.itemsize), header.dtype)
                left -= size

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], Header]]:
        where = f"{shown_path(self.path)}: {visible(name)}"
        with readable_as("NPZ", where):
            entry = self.archive.getinfo(self.entries.get(VALUE + name) or self.entries[name])
            if entry.compress_type not in PLAIN:
                raise InputError(f"{where}: is packed otherwise than NumPy packs arrays: write it again")
            with self.archive.open(entry) as member:
                yield member, header_of(member, entry.file_size, where)

    def whole_numbers(self, *names: str) -> tuple[int, ...] | None:
        """Those of one sentence in the first array of these names that there is; None where it is none."""
        name = next((name for name in names if name in self.entries), None)
        array = None if name is None else self.read(name, MOST_IDS)
        if array is None or array.dtype.kind not in "iub" or not array.size or max(array.shape) != array.size:
            return None
        return tuple(map(int, array.reshape(-1).tolist()))


def open_trace(path: Path) -> TraceFile:
    """A file's arrays by name; where some begin with `value/`, those are the steps.

    Raises:
        InputError: The file is missing or no NPZ file, or has no arrays.
    """
    check_regular(path)
    with readable_as("NPZ", shown_path(path)):
        archive = zipfile.ZipFile(_InPieces(path))
    members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
    if not members:
        raise InputError(f"{shown_path(path)}: holds no arrays: is it a trace?")
    if len(members) > MOST_ARRAYS:
        raise InputError(f"{shown_path(path)}: holds {len(members):,} arrays, and {MOST_ARRAYS:,} can be read")
    return TraceFile(path, members, archive)


class _InPieces(io.FileIO):
    """A file of which no large piece is read: the list of an archive's entries would be one."""

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes."""
        if size is not None and size > LARGEST_LIST:
            raise ValueError(f"its list of names has {size:,} bytes")
        return super().read(size)

    def __del__(self) -> None:
        self.close()


@contextmanager
def readable_as(kind: str, where: str) -> Iterator[None]:
    """One line for whatever the parsers of a damaged file raise."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{where}: does not fit into memory") from error
    except Exception as error:  # the parsers of a damaged file raise whatever they like
        reason = visible((str(error) or type(error).__name__).splitlines()[0])[:120]
        raise InputError(f"{where}: not a whole {kind} file ({reason}): write it again") from error


def header_of(member: IO[bytes], size: int, where: str) -> Header:
    """An array's header; one that does not fit the size of its entry is refused, before memory is taken for it."""
    version = np.lib.format.read_magic(member)
    if version not in _HEADERS:
        raise ValueError(f"NPY version {version[0]}.{version[1]} is not known")
    length = member.read(2 if version == (1, 0) else 4)
    if int.from_bytes(length, "little") > LONGEST_HEADER:
        raise ValueError("its header is too long")
    with warnings.catch_warnings(action="ignore"):  # about how strange a header is: it is read, or refused
        header = Header(*_HEADERS[version](io.BytesIO(length + member.read(int.from_bytes(length, "little")))))
    dtype, text = header.dtype, header.dtype.kind in "US"
    if dtype.kind not in "biuf" and dtype != BFLOAT16:
        raise InputError(f"{where}: holds {TEXT if text else visible(str(dtype))}, not numbers: nothing is unpickled")
    if len(header.shape) > MOST_AXES or not all(0 <= axis <= LONGEST_AXIS for axis in header.shape):
        raise ValueError(f"no array has the shape {str(header.shape)[:60]}")
    if member.tell() + math.prod(header.shape) * dtype.itemsize != size:
        raise ValueError("its header says another size than it has")
    return header


def numbers(member: IO[bytes], header: Header, where: str, most: int | None = None) -> Host:
    """The numbers behind a header.

    Raises:
        InputError: They are more than `most`, or than fit into memory.
    """
    count = math.prod(header.shape)
    if most is not None and count > most:
        raise InputError(f"{where}: {too_many(count, most)}")
    needed = count * header.dtype.itemsize
    if needed > available_memory():
        raise InputError(f"{where}: needs {readable(needed)} of memory, {readable(available_memory())} are free")
    cells = np.frombuffer(_whole(member, needed), header.dtype)
    array: Host = cells.reshape(header.shape, order="F" if header.fortran else "C")
    return array


def too_many(count: int, most: int) -> str:
    """Why an array is not read."""
    return f"has {count:,} numbers, and at most {most:,} make sense here: leave it out, or write less"


def _whole(member: IO[bytes], size: int) -> bytearray:
    data = bytearray(size)
    for start in range(0, size, PIECE):
        piece = member.read(min(PIECE, size - start))
        if len(piece) < min(PIECE, size - start):
            raise ValueError("it is cut")
        data[start : start + len(piece)] = piece
    return data
