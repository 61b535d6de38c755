"""Formats of arrays: NPZ and NPY, safetensors, and folders with a file a step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, Values, stored_values
from tui_transformer.diagnosis.dumps.log import matrix_of
from tui_transformer.diagnosis.dumps.npz_reader import (
    VALUE,
    Header,
    TraceFile,
    header_of,
    numbers,
    open_trace,
    readable_as,
)
from tui_transformer.diagnosis.dumps.numbers import Printed, with_precision
from tui_transformer.engine.axis import Shape
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular, is_file, read_json
from tui_transformer.model import tensors as weight_files
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

Wanted = TypeVar("Wanted")


def read_npz(path: Path) -> Dump:
    """The arrays of an NPZ file; where some begin with `value/`, gradients are left out."""
    file = open_trace(path)
    return Dump(path, {name: _npz_tensor(file, name) for each in file.entries if (name := each.removeprefix(VALUE))})


def _npz_tensor(file: TraceFile, name: str) -> Tensor:
    try:
        shape, holds_numbers = file.shape(name), True
    except InputError:  # a text beside arrays is left alone
        shape, holds_numbers = (), False
    return Tensor(name, shape, lambda: stored_values(file.read(name)), numbers=holds_numbers)


def npy_tensor(path: Path) -> Tensor:
    """An NPY file as a tensor of its name."""

    def opened(use: Callable[[IO[bytes], Header], Wanted]) -> Wanted:
        check_regular(path)
        with readable_as("NPY", shown_path(path)), path.open("rb") as file:
            return use(file, header_of(file, path.stat().st_size, shown_path(path)))

    shape = opened(lambda _, header: header.shape)

    def read() -> Values:
        array = opened(lambda file, header: numbers(file, header, shown_path(path)))
        if array.shape != shape:
            raise InputError(f"{shown_path(path)}: was written to while it was read: write it again")
        return stored_values(array)

    return Tensor(path.stem, shape, read)


KINDS = {
    **{f"F{bits}": f"<f{bits // 8}" for bits in (64, 32, 16)},
    "BF16": "V2",
    **{f"I{bits}": f"<i{bits // 8}" for bits in (64, 32, 16, 8)},
    "U8": "u1",
    "BOOL": "?",
}
"""Stored types that can be read, and under which NumPy reads them."""

RAW = {f".{kind.lower()}": KINDS[kind] for kind in ("F64", "F32", "F16", "BF16", "I64", "I32")}
RAW |= {".bin": KINDS["F32"], ".raw": KINDS["F32"]}
"""Endings of files of bare numbers, little-endian, and what those are."""


def read_safetensors(path: Path) -> Dump:
    """The tensors of a file, in the order in which they lie there."""
    stored = sorted(weight_files.open_file(path).by_name.items(), key=lambda each: each[1].start)
    return Dump(path, {name: Tensor(name, each.shape, partial(_read_stored, name, each)) for name, each in stored})


def _read_stored(name: str, tensor: weight_files.Tensor) -> Values:
    if tensor.kind not in KINDS:
        raise InputError(f"{tensor.path}: {visible(name)} is stored as {tensor.kind}: only {', '.join(KINDS)} are read")
    try:
        with tensor.path.open("rb") as file:
            file.seek(tensor.start)
            data = file.read(tensor.stop - tensor.start)
    except OSError as error:
        raise InputError(f"{tensor.path}: cannot be read: {error.strerror}") from error
    if len(data) != tensor.stop - tensor.start:
        raise InputError(f"{tensor.path}: has become shorter while it was read: write it again")
    return stored_values(np.frombuffer(data, KINDS[tensor.kind]).reshape(tensor.shape))


TEXT = frozenset({".txt", ".csv", ".tsv", ".dat", ".out", ".mat", ".log", ""})
LARGEST_SHAPES = 1 << 24


def read_folder(path: Path) -> Dump:
    """A tensor for every file of a folder whose ending is known; InputError where there is none."""

    def in_order(file: Path) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]

    files = sorted((file for file in path.iterdir() if file.is_file()), key=in_order)
    tensors = {file.stem: npy_tensor(file) for file in files if file.suffix == ".npy"}
    tensors |= _raw_tensors([file for file in files if file.suffix in RAW], files)
    texts = {file.stem: matrix_of(file) for file in files if file.suffix in TEXT and not file.name.startswith(".")}
    tensors |= with_precision({name: each for name, each in texts.items() if isinstance(each, Printed)})
    refused = {name: each for name, each in texts.items() if isinstance(each, str)}
    if not tensors:
        raise InputError(
            f"{shown_path(path)}: no array is in this folder: name.npy, name.f32 or name.txt, a file a step"
        )
    return Dump(path, tensors, refused=refused)


def read_raw(path: Path) -> Dump:
    """One file of bare numbers, with its shape where a JSON file beside it says it."""
    beside = [file for file in (path.with_name("shapes.json"), path.with_suffix(".json")) if is_file(file)]
    return Dump(path, _raw_tensors([path], beside))


def is_dump_folder(path: Path) -> bool:
    """True if a folder holds arrays and not a checkpoint."""
    try:
        names = [file.name for file in path.iterdir()]
    except OSError:
        return False
    endings = {Path(name).suffix for name in names}
    checkpoint = "config.json" in names or any(name.endswith((".safetensors", ".gguf")) for name in names)
    return not checkpoint and bool(endings & {".npy", *RAW, ".txt", ".csv"})


def _raw_tensors(files: list[Path], beside: list[Path]) -> dict[str, Tensor]:
    """Files of bare numbers; their shapes are in JSON files, which may be of ggml (`ne`): the fastest axis first."""
    shapes: dict[str, Shape] = {}
    fastest_first = False
    for file in beside:
        if file.suffix == ".json":
            raw = read_json(file, LARGEST_SHAPES)
            alone = raw.get("shape", raw.get("ne"))
            entries = {file.stem: raw} if isinstance(alone, list) else raw.get("shapes", raw)
            for name, entry in entries.items() if isinstance(entries, dict) else ():
                sizes = entry.get("shape", entry.get("ne")) if isinstance(entry, dict) else entry
                fastest_first |= isinstance(entry, dict) and "ne" in entry
                if isinstance(sizes, list) and all(isinstance(size, int) and size >= 0 for size in sizes):
                    bare = name.rpartition(".")[0] if name.endswith(tuple(RAW)) else name
                    shapes[bare] = tuple(sizes)
    return {file.stem: _raw(file, shapes.get(file.stem), fastest_first=fastest_first) for file in files}


def _raw(file: Path, stated: Shape | None, *, fastest_first: bool) -> Tensor:
    dtype = np.dtype(RAW[file.suffix])
    cells, rest = divmod(file.stat().st_size, dtype.itemsize)
    shape = (cells,) if stated is None else stated
    if rest or math.prod(shape) != cells:
        said, size = " × ".join(map(str, shape)), file.stat().st_size
        raise InputError(f"{shown_path(file)}: {size:,} bytes are not {said} numbers of {dtype.itemsize} bytes")

    def read() -> Values:
        try:
            return stored_values(np.fromfile(file, dtype=dtype).reshape(shape))
        except (OSError, ValueError) as error:
            raise InputError(f"{shown_path(file)}: was cut or written to while it was read: write it again") from error

    known = stated is not None
    return Tensor(file.stem, shape, read, fastest_first=fastest_first and known, shapeless=not known)
