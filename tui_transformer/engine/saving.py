"""Arrays by name in a file: safetensors or NPZ, written whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.files import write_whole

Arrays = Mapping[str, Host]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays in the format that the name ends in.

    Raises:
        InputError: The file cannot be written; the old one is as it was.
    """
    if path.suffix not in WRITERS:
        raise UsageError(f"{path}: name a file that ends in {' or '.join(WRITERS)}")
    write_whole(path, WRITERS[path.suffix](arrays))


def _safetensors(arrays: Arrays) -> bytes:
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _npz(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


WRITERS: Mapping[str, Callable[[Arrays], bytes]] = {".safetensors": _safetensors, ".npz": _npz}
"""By the end of the name."""
