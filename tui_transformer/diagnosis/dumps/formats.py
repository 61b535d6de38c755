"""Formats of arrays: NPZ and NPY, safetensors, and folders with a file a step."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from tui_transformer.diagnosis.dumps.dump import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    WHOLE,
    Dump,
    Precision,
    Tensor,
    Values,
    bfloat16,
    of_numbers,
)
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
    """The arrays of an NPZ file; where some begin with `value/`, gradients are left out.

    Raises:
        InputError: It is no NPZ file, or holds what are no numbers.
    """
    file = open_trace(path)
    return Dump(path, {name: _npz_tensor(file, entry) for entry in file.entries if (name := entry.removeprefix(VALUE))})


def _npz_tensor(file: TraceFile, entry: str) -> Tensor:
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


KINDS: Mapping[str, tuple[str, Precision]] = {
    "F64": ("<f8", FLOAT64),
    "F32": ("<f4", FLOAT32),
    "F16": ("<f2", FLOAT16),
    "BF16": ("<u2", BFLOAT16),
    "I64": ("<i8", WHOLE),
    "I32": ("<i4", WHOLE),
    "I16": ("<i2", WHOLE),
    "I8": ("i1", WHOLE),
    "U8": ("u1", WHOLE),
    "BOOL": ("?", WHOLE),
}
"""Stored types that can be read: under which NumPy reads them, and how exact they are."""

RAW = {
    **{f".{kind.lower()}": KINDS[kind] for kind in ("F64", "F32", "F16", "BF16", "I64", "I32")},
    ".bin": KINDS["F32"],
    ".raw": KINDS["F32"],
}
"""Endings of files of bare numbers, little-endian, and what those are."""


def read_safetensors(path: Path) -> Dump:
    """The tensors of a file, in the order in which they lie there.

    Raises:
        InputError: It is cut, or not what it says.
    """
    stored = sorted(weight_files.open_file(path).by_name.items(), key=lambda each: each[1].start)
    return Dump(
        path, {name: Tensor(name, tensor.shape, partial(_read_stored, name, tensor)) for name, tensor in stored}
    )


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
    dtype, precision = KINDS[tensor.kind]
    cells = np.frombuffer(data, dtype).reshape(tensor.shape)
    return Values(bfloat16(cells) if precision is BFLOAT16 else cells, precision)


TEXT = frozenset({".txt", ".csv", ".tsv", ".dat", ".out", ".mat", ".log", ""})
LARGEST_SHAPES = 1 << 24


def read_folder(path: Path) -> Dump:
    """A tensor for every file of a folder whose ending is known.

    Raises:
        InputError: There is none, or one cannot be read.
    """

    def in_order(file: Path) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]

    files = sorted((file for file in path.iterdir() if file.is_file()), key=in_order)
    shapes, reversed_ones = _shapes(files)
    tensors = {file.stem: npy_tensor(file) for file in files if file.suffix == ".npy"}
    for file in files:
        if file.suffix in RAW:
            tensors[file.stem] = _raw(file, shapes, fastest_first=reversed_ones)
    texts = {file.stem: matrix_of(file) for file in files if file.suffix in TEXT and not file.name.startswith(".")}
    tensors |= with_precision({name: each for name, each in texts.items() if isinstance(each, Printed)})
    refused = {name: each for name, each in texts.items() if isinstance(each, str)}
    if not tensors:
        raise InputError(
            f"{shown_path(path)}: no array is in this folder: name.npy, name.f32 or name.txt, a file a step"
        )
    return Dump(path, tensors, refused=refused)


def read_raw(path: Path) -> Dump:
    """One file of bare numbers, with its shape where a JSON file beside it says it.

    Raises:
        InputError: Its bytes are no whole numbers of its type, or not of that shape.
    """
    beside = [file for file in (path.with_name("shapes.json"), path.with_suffix(".json")) if is_file(file)]
    shapes, reversed_ones = _shapes(beside)
    return Dump(path, {path.stem: _raw(path, shapes, fastest_first=reversed_ones)})


def is_dump_folder(path: Path) -> bool:
    """True if a folder holds arrays and not a checkpoint."""
    try:
        names = [file.name for file in path.iterdir()]
    except OSError:
        return False
    endings = {Path(name).suffix for name in names}
    checkpoint = "config.json" in names or any(name.endswith((".safetensors", ".gguf")) for name in names)
    return not checkpoint and bool(endings & {".npy", *RAW, ".txt", ".csv"})


def _shapes(files: list[Path]) -> tuple[dict[str, Shape], bool]:
    """The shape of every raw file, as the JSON files of the folder say; and whether they are ggml's (`ne`)."""
    shapes: dict[str, Shape] = {}
    fastest_first = False
    for file in files:
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
    return shapes, fastest_first


def _raw(file: Path, shapes: Mapping[str, Shape], *, fastest_first: bool) -> Tensor:
    dtype, precision = RAW[file.suffix]
    size = np.dtype(dtype).itemsize
    cells, rest = divmod(file.stat().st_size, size)
    shape = shapes.get(file.stem, (cells,))
    if rest or math.prod(shape) != cells:
        said = " × ".join(map(str, shape))
        raise InputError(f"{shown_path(file)}: {file.stat().st_size:,} bytes are not {said} numbers of {size} bytes")

    def read() -> Values:
        try:
            numbers = np.fromfile(file, dtype=dtype).reshape(shape)
        except (OSError, ValueError) as error:
            raise InputError(f"{shown_path(file)}: was cut or written to while it was read: write it again") from error
        return Values(bfloat16(numbers) if precision is BFLOAT16 else numbers, precision)

    known = file.stem in shapes
    return Tensor(file.stem, shape, read, fastest_first=fastest_first and known, shapeless=not known)
