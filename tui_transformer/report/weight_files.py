"""The weights of a model as files, in a folder that opens again: safetensors, NPZ, raw numbers with shapes, or CSV.

One weight at a time is in memory. A folder appears whole or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tui_transformer.engine.axis import Shape, shape_of
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_there, writing
from tui_transformer.model import Model
from tui_transformer.model.checkpoint import save_settings
from tui_transformer.model.loading import check_settings_say_all
from tui_transformer.model.other_files import SHAPES, WEIGHTS
from tui_transformer.report.export import csv_text, write_npz
from tui_transformer.report.numbers import exact
from tui_transformer.text.files import shown_path

Arrays = Iterable[tuple[str, Host]]
Shapes = Mapping[str, Shape]
KINDS: Mapping[str, tuple[str, str]] = {"float32": ("F32", ".f32"), "float64": ("F64", ".f64")}
"""Types of NumPy → the name that safetensors has for them, and the ending of raw files."""

CELLS = 1 << 20
"""Numbers that are made text of at a time."""


def shapes_of(model: Model) -> dict[str, Shape]:
    """Every weight and its shape, in the order of the data."""
    return {name: shape_of(axes) for name, axes in model.program(1).weights.items()}


def arrays_of(model: Model) -> Iterator[tuple[str, Host]]:
    """Every weight under its name; one is read when its turn comes, and let go again."""
    for name, shape in shapes_of(model).items():
        yield name, np.ascontiguousarray(model.backend.to_host(model.weights.get(name, shape)))
        model.weights.let_go()


def export(model: Model, out: Path, form: str, arrays: Arrays | None = None) -> None:
    """Write the weights: into the file that `out` names by its ending, else into a new folder that opens as a model.

    The form is a key of `FORMS`; the arrays are the weights as they come, by default `arrays_of` the model.

    Raises:
        InputError: The folder is there already, or nothing can be written there.
        UsageError: The name of the file is of another format.
    """
    arrays, shapes = arrays_of(model) if arrays is None else arrays, shapes_of(model)
    ending = out.suffix.lower()
    if ending in FILES:
        if FILES[ending] != form:
            raise UsageError(f"{out}: a file that ends in {ending} is {FILES[ending]}, not {form}")
        with writing(out) as file:
            ONE_FILE[form](file, arrays, shapes, str(model.backend.dtype))
        return
    check_settings_say_all(model.config)
    with _new_folder(out) as folder:
        FORMS[form](folder, arrays, shapes, str(model.backend.dtype))
        save_settings(folder, model.config, model.vocabulary)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into, under a temporary name beside `path`; renamed at the end, removed on any failure."""
    path = Path(os.path.realpath(path))  # of a loop of links, it is the link
    if is_there(path) and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{shown_path(path)}: there is something already: name a new folder")
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{shown_path(path)}: cannot be made: {error.strerror}") from error
    try:
        yield temporary
        try:
            os.replace(temporary, path)  # noqa: PTH105 - onto an empty folder too
        except OSError as error:
            raise InputError(f"{shown_path(path)}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


# One file


def _safetensors(file: BinaryIO, arrays: Arrays, shapes: Shapes, dtype: str) -> None:
    """A header of JSON with every tensor's place, then the numbers (https://github.com/huggingface/safetensors)."""
    header, at, size = {}, 0, np.dtype(dtype).itemsize
    for name, shape in shapes.items():
        stop = at + size * int(np.prod(shape, dtype=np.int64))
        header[name] = {"dtype": KINDS[dtype][0], "shape": shape, "data_offsets": [at, stop]}
        at = stop
    data = json.dumps(header, separators=(",", ":")).encode()
    data += b" " * (-len(data) % 8)
    file.write(len(data).to_bytes(8, "little") + data)
    for _, array in arrays:
        file.write(_little(array).data)


def _little(array: Host) -> Host:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


ONE_FILE: Mapping[str, Callable[[BinaryIO, Arrays, Shapes, str], None]] = {
    "safetensors": _safetensors,
    "npz": lambda file, arrays, _shapes, _dtype: write_npz(file, arrays),
}
FILES: Mapping[str, str] = {".safetensors": "safetensors", ".npz": "npz"}


# Folders


def _single(name: str, form: str, folder: Path, arrays: Arrays, shapes: Shapes, dtype: str) -> None:
    with writing(folder / name) as file:
        ONE_FILE[form](file, arrays, shapes, dtype)


def _raw(folder: Path, arrays: Arrays, shapes: Shapes, dtype: str) -> None:
    for name, array in arrays:
        with writing(folder / f"{name}{KINDS[dtype][1]}") as file:
            file.write(_little(array).data)
    _write_shapes(folder, shapes)


def _csv(folder: Path, arrays: Arrays, shapes: Shapes, _dtype: str) -> None:
    """A line a row, each number with all digits of its value: it is the same in either precision that reads it.

    What has three axes or more has the rows of all matrices one below the other.
    """
    for name, array in arrays:
        rows = array.reshape(-1, array.shape[-1])
        height = max(1, CELLS // max(1, rows.shape[1]))
        with writing(folder / f"{name}.csv") as file:
            for start in range(0, len(rows), height):
                file.write(csv_text(exact(rows[start : start + height].astype(np.float64))).encode())
    _write_shapes(folder, shapes)


def _write_shapes(folder: Path, shapes: Shapes) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in shapes.items())
    with writing(folder / SHAPES) as file:
        file.write(f"{{\n{lines}\n}}\n".encode())


FORMS: Mapping[str, Callable[[Path, Arrays, Shapes, str], None]] = {
    "safetensors": partial(_single, WEIGHTS, "safetensors"),
    "npz": partial(_single, "model.npz", "npz"),
    "raw": _raw,
    "csv": _csv,
}
"""How the weights of a folder are written."""
