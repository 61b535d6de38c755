"""Whether the files that a storm exported are whole."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

TEMPORARY = re.compile(r"\..*\.[0-9a-f]{8}")
"""The name of a file that is being written."""


def faults_of_files(folder: Path) -> list[str]:
    """A line for each file that is not whole, or that was to be renamed."""
    return list(_faults(folder)) if folder.is_dir() else []


def _faults(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if TEMPORARY.fullmatch(path.name):
            yield f"a temporary file is left: {path.name}"
        elif path.suffix in READERS:
            try:
                READERS[path.suffix](path)
            except Exception as error:  # noqa: BLE001 - whatever a reader finds
                yield f"{path.name} is not whole: {type(error).__name__}: {error}"


def _read_csv(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        widths = {len(row) for row in csv.reader(file)}
    if len(widths) > 1:
        raise ValueError(f"rows of {sorted(widths)} columns")


def _read_npz(path: Path) -> None:
    with np.load(path) as file:
        for name in file.files:
            _ = file[name]


READERS: dict[str, Callable[[Path], object]] = {
    ".csv": _read_csv,
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".npz": _read_npz,
    ".svg": lambda path: ElementTree.parse(path),  # noqa: S314 - a file of our own
}
