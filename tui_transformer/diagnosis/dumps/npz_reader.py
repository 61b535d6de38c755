"""Reading traces from NPZ files of any origin: nothing is unpickled, and no header is believed."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.keep import available_memory, readable
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

VALUE = "value/"
"""The prefix of the steps in a file that holds more than the steps."""

MASKS = ("attention_mask", "padding")
"""Entries that say which tokens are real: no steps."""

RUN = 1 << 20
"""Numbers that are read at a time."""

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
    """The arrays of a file by name; each is read when it is asked for, or `run` numbers at a time."""

    path: Path
    entries: Mapping[str, str]
    run: int = RUN

    @property
    def names(self) -> tuple[str, ...]:
        """The steps, in the order of the file."""
        steps = tuple(name for name in self.entries if name.startswith(VALUE))
        return tuple(name.removeprefix(VALUE) for name in steps) or tuple(
            name for name in self.entries if name not in MASKS
        )

    def shape(self, name: str) -> Shape:
        """The shape of one array.

        Raises:
            InputError: It is damaged, or holds no numbers.
        """
        with self._opened(name) as (_, header):
            return header.shape

    def read(self, name: str) -> Host:
        """One array of numbers.

        Raises:
            InputError: It is damaged, too large for the memory, or holds no numbers.
        """
        with self._opened(name) as (member, header):
            _check_memory(header, f"{shown_path(self.path)}: {visible(name)}")
            cells = np.frombuffer(bytearray(member.read()), header.dtype)
            array: Host = cells.reshape(header.shape, order="F" if header.fortran else "C")
            return array

    def cells(self, name: str) -> Iterator[Host]:
        """The numbers of one array in order, in runs of at most `run`: however large it is, little memory is taken.

        Raises:
            InputError: It is damaged, or holds no numbers, or its first axis runs fastest and it is too large.
        """
        with self._opened(name) as (member, header):
            if header.fortran:
                yield self.read(name).reshape(-1)
                return
            left = math.prod(header.shape)
            while left:
                size = min(left, self.run)
                yield np.frombuffer(member.read(size * header.dtype.itemsize), header.dtype)
                left -= size

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], Header]]:
        """An array's entry after its header."""
        with _readable(self.path, name), zipfile.ZipFile(self.path) as archive:
            entry = archive.getinfo(self.entries.get(VALUE + name) or self.entries[name])
            with archive.open(entry) as member:
                yield member, _header(member, entry.file_size, f"{shown_path(self.path)}: {visible(name)}")

    def ids(self) -> tuple[int, ...] | None:
        """The token IDs that the trace was made from, where the file has them."""
        return self._ids("tokens", "input_ids")

    def decoder_ids(self) -> tuple[int, ...] | None:
        """The same for the decoder of an encoder–decoder."""
        return self._ids("decoder.tokens", "decoder_input_ids")

    def mask(self) -> tuple[int, ...] | None:
        """1 for every token that was read and 0 for padding, where the file says it."""
        return self._ids(*MASKS)

    def _ids(self, *names: str) -> tuple[int, ...] | None:
        name = next((name for name in names if name in self.entries), None)
        array = None if name is None else self.read(name)
        if array is None or array.dtype.kind not in "iub" or not array.size or max(array.shape) != array.size:
            return None
        return tuple(map(int, array.reshape(-1).tolist()))


def open_trace(path: Path) -> TraceFile:
    """A file's arrays by name; where some begin with `value/`, those are the steps.

    Raises:
        InputError: The file is missing or no NPZ file, or has no arrays.
    """
    check_regular(path)
    with _readable(path), zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
    if not members:
        raise InputError(f"{shown_path(path)}: holds no arrays: is it a trace?")
    return TraceFile(path, members)


@contextmanager
def _readable(path: Path, name: str = "") -> Iterator[None]:
    where = f"{shown_path(path)}: {visible(name)}" if name else shown_path(path)
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"{where}: does not fit into memory") from error
    except Exception as error:  # the parsers of a damaged file raise whatever they like
        reason = visible((str(error) or type(error).__name__).splitlines()[0])[:120]
        raise InputError(f"{where}: not a whole NPZ file ({reason}): write it again") from error


def _header(member: IO[bytes], size: int, where: str) -> Header:
    """An array's header; one that does not fit the size of its entry is refused, before memory is taken for it."""
    version = np.lib.format.read_magic(member)
    if version not in _HEADERS:
        raise ValueError(f"NPY version {version[0]}.{version[1]} is not known")
    header = Header(*_HEADERS[version](member))
    dtype = header.dtype
    if dtype.kind not in "biuf" and dtype != BFLOAT16:
        raise InputError(f"{where}: holds {visible(str(dtype))}, not numbers: nothing is unpickled")
    if member.tell() + math.prod(header.shape) * dtype.itemsize != size:
        raise ValueError("its header says another size than it has")
    return header


def _check_memory(header: Header, where: str) -> None:
    """Refuse an array that does not fit into memory."""
    needed = math.prod(header.shape) * header.dtype.itemsize
    if needed > available_memory():
        raise InputError(f"{where}: needs {readable(needed)} of memory, {readable(available_memory())} are free")
