"""Folders with a file a step: NPY, raw numbers with a JSON of shapes, or text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, Values, bfloat16
from tui_transformer.diagnosis.dumps.log import matrix_of
from tui_transformer.diagnosis.dumps.npz import npy_tensor
from tui_transformer.diagnosis.dumps.numbers import Printed, with_precision
from tui_transformer.diagnosis.dumps.precision import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, WHOLE, Precision
from tui_transformer.engine.axis import Shape
from tui_transformer.errors import InputError
from tui_transformer.files import is_file, read_json
from tui_transformer.text.files import shown_path

RAW: Mapping[str, tuple[str, Precision]] = {
    ".f64": ("<f8", FLOAT64),
    ".f32": ("<f4", FLOAT32),
    ".bin": ("<f4", FLOAT32),
    ".raw": ("<f4", FLOAT32),
    ".f16": ("<f2", FLOAT16),
    ".bf16": ("<u2", BFLOAT16),
    ".i64": ("<i8", WHOLE),
    ".i32": ("<i4", WHOLE),
}
"""Endings of files of bare numbers, little-endian, and what those are."""

TEXT = frozenset({".txt", ".csv", ".tsv", ".dat", ".out", ".mat", ".log", ""})
LARGEST_SHAPES = 1 << 24


def read_folder(path: Path) -> Dump:
    """A tensor for every file of a folder whose ending is known.

    Raises:
        InputError: There is none, or one cannot be read.
    """
    files = sorted((file for file in path.iterdir() if file.is_file()), key=_in_order)
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
    """Whether a folder holds arrays and not a checkpoint."""
    try:
        names = [file.name for file in path.iterdir()]
    except OSError:
        return False
    endings = {Path(name).suffix for name in names}
    checkpoint = "config.json" in names or any(name.endswith((".safetensors", ".gguf")) for name in names)
    return not checkpoint and bool(endings & {".npy", *RAW, ".txt", ".csv"})


def _in_order(file: Path) -> list[Any]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]


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
                    shapes[_bare(name)] = tuple(sizes)
    return shapes, fastest_first


def _bare(name: str) -> str:
    return name.rpartition(".")[0] if any(name.endswith(ending) for ending in RAW) else name


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
