"""Traces and views as NPZ: arrays by name, written one at a time, large ones in blocks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import IO, BinaryIO

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.views.view import View

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of every entry, so that the same trace gives the same bytes."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """An array of which a part is there at a time: its shape, and its cells in order (the last axis runs fastest)."""

    shape: Shape
    cells: Iterable[Host]


def write(file: BinaryIO, arrays: Iterable[tuple[str, Host | Blocks]]) -> None:
    """Write arrays under their names; only one, or one block of one, is in memory at a time.

    Raises:
        OSError: The file cannot take them.
    """
    archive = zipfile.ZipFile(file, "w", allowZip64=True)
    try:
        for name, array in arrays:
            _add(archive, name, array)
        archive.close()
    except BaseException:
        archive.fp = None  # an archive that is given up is not to be finished, which would hide the reason
        raise


def _add(archive: zipfile.ZipFile, name: str, array: Host | Blocks) -> None:
    with archive.open(zipfile.ZipInfo(f"{name}.npy", _EARLIEST), "w", force_zip64=True) as member:
        if isinstance(array, Blocks):
            _write_blocks(member, array)
        else:
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def _write_blocks(member: IO[bytes], array: Blocks) -> None:
    """The same bytes as of the whole array."""
    blocks = iter(array.cells)
    first = next(blocks)
    descr = np.lib.format.dtype_to_descr(first.dtype)
    np.lib.format.write_array_header_1_0(member, {"descr": descr, "fortran_order": False, "shape": array.shape})
    for block in chain((first,), blocks):
        member.write(np.ascontiguousarray(block).data.cast("B"))


def view_array(view: View) -> Host:
    """The numbers of a view, as rows × columns; a vector has one axis."""
    values = view.window(range(view.rows.size), range(view.columns.size))
    return values if view.rows.name and view.columns.name else values.reshape(-1)
