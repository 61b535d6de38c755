"""Traces and views as NPZ: arrays by name, written one at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from typing import BinaryIO

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.views.view import View

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of every entry, so that the same trace gives the same bytes."""


def write(file: BinaryIO, arrays: Iterable[tuple[str, Host]]) -> None:
    """Write arrays under their names; only one at a time is in memory.

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


def _add(archive: zipfile.ZipFile, name: str, array: Host) -> None:
    with archive.open(zipfile.ZipInfo(f"{name}.npy", _EARLIEST), "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def view_array(view: View) -> Host:
    """The numbers of a view, as rows × columns; a vector has one axis."""
    values = view.window(range(view.rows.size), range(view.columns.size))
    return values if view.rows.name and view.columns.name else values.reshape(-1)
