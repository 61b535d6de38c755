"""Broken folders of recorded steps: read, or refused in one line that names a file of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer import Model, Recorded, record


def used(folder: Path) -> None:
    """Every array of a folder, as it is read."""
    data = Recorded.load(folder)
    for rows in data.values():
        _ = repr(data), repr(rows), rows[:2], rows[-1:], rows.token[:3]


@COUNTS
def test_broken_folders(tmp_path: Path, count: int) -> None:
    record(Model.load("story", device="cpu"), ["A crow", "The fox"], ["1.output"], tmp_path)
    index, *arrays = tmp_path / "index.json", *tmp_path.glob("*.npy")
    raw = index.read_bytes()
    each(index, count, st.one_of(changed(json.loads(raw)).map(as_json), damaged(raw)))
    for path in arrays:
        each(path, count, damaged(path.read_bytes()))


def each(path: Path, count: int, content: st.SearchStrategy[bytes]) -> None:
    """The folder with other contents of one file, which is put back behind that."""
    raw, paths = path.read_bytes(), [*path.parent.iterdir()]

    def check(content: bytes) -> None:
        path.write_bytes(content)
        with np.errstate(all="ignore"):
            read_or_refused(lambda: used(path.parent), *paths)

    hold(count, check, content=content)
    path.write_bytes(raw)
