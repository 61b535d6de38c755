"""NPZ files, and single arrays as NPY."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, Values, of_numbers
from tui_transformer.diagnosis.dumps.npz_reader import VALUE, TraceFile, open_trace
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path


def read_npz(path: Path) -> Dump:
    """The arrays of an NPZ file; where some begin with `value/`, gradients are left out.

    Raises:
        InputError: It is no NPZ file, or holds what are no numbers.
    """
    file = open_trace(path)
    return Dump(path, {name: _tensor(file, entry) for entry in file.entries if (name := entry.removeprefix(VALUE))})


def _tensor(file: TraceFile, entry: str) -> Tensor:
    name = entry.removeprefix(VALUE)
    return Tensor(name, file.shape(name) if _numbers(file, name) else (), lambda: of_numbers(file.read(name)))


def _numbers(file: TraceFile, name: str) -> bool:
    """Whether an entry holds numbers: a text beside them is left alone."""
    try:
        file.shape(name)
    except InputError:
        return False
    return True


def npy_tensor(path: Path) -> Tensor:
    """An NPY file as a tensor of its name.

    Raises:
        InputError: It is damaged, or holds no numbers.
    """
    shape = _npy(path, mapped=True).shape

    def read() -> Values:
        array = _npy(path)
        if array.shape != shape:
            raise InputError(f"{shown_path(path)}: was written to while it was read: write it again")
        return of_numbers(array)

    return Tensor(path.stem, shape, read)


def _npy(path: Path, *, mapped: bool = False) -> Host:
    """The numbers of an NPY file; mapped, they are not to be touched, as the file may be cut meanwhile."""
    check_regular(path)
    try:
        array: Host = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except Exception as error:  # a damaged header raises whatever it likes
        reason = visible((str(error) or type(error).__name__).splitlines()[0])[:120]
        raise InputError(f"{shown_path(path)}: not a whole NPY file ({reason}): write it again") from error
    if array.dtype.kind not in "biuf" and array.dtype != np.dtype("V2"):
        raise InputError(f"{shown_path(path)}: holds {visible(str(array.dtype))}, not numbers: nothing is unpickled")
    return array
