"""NPZ files, and single arrays as NPY."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, Values, of_numbers
from tui_transformer.diagnosis.dumps.npz_reader import (
    VALUE,
    Header,
    TraceFile,
    header_of,
    numbers,
    open_trace,
    readable_as,
)
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular
from tui_transformer.text.files import shown_path

Wanted = TypeVar("Wanted")


def read_npz(path: Path) -> Dump:
    """The arrays of an NPZ file; where some begin with `value/`, gradients are left out.

    Raises:
        InputError: It is no NPZ file, or holds what are no numbers.
    """
    file = open_trace(path)
    return Dump(path, {name: _tensor(file, entry) for entry in file.entries if (name := entry.removeprefix(VALUE))})


def _tensor(file: TraceFile, entry: str) -> Tensor:
    name = entry.removeprefix(VALUE)
    try:
        shape, holds_numbers = file.shape(name), True
    except InputError:  # a text beside arrays is left alone
        shape, holds_numbers = (), False
    return Tensor(name, shape, lambda: of_numbers(file.read(name)), numbers=holds_numbers)


def npy_tensor(path: Path) -> Tensor:
    """An NPY file as a tensor of its name.

    Raises:
        InputError: It is damaged, or holds no numbers.
    """
    shape = _npy(path, lambda _, header: header.shape)

    def read() -> Values:
        array = _npy(path, lambda file, header: numbers(file, header, shown_path(path)))
        if array.shape != shape:
            raise InputError(f"{shown_path(path)}: was written to while it was read: write it again")
        return of_numbers(array)

    return Tensor(path.stem, shape, read)


def _npy(path: Path, use: Callable[[IO[bytes], Header], Wanted]) -> Wanted:
    check_regular(path)
    with readable_as("NPY", shown_path(path)), path.open("rb") as file:
        return use(file, header_of(file, path.stat().st_size, shown_path(path)))
