"""Broken NPZ files: read, or refused in one line that names the file."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer.diagnosis.dumps.npz_reader import RUN, open_trace

ARRAYS = {
    "tokens": np.array([1, 2, 3]),
    "value/output": np.arange(6.0).reshape(2, 3),
    "value/turned": np.asfortranarray(np.ones((3, 4), "f4")),
    "value/one": np.float16(3),
}


def packed(*, deflated: bool) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if deflated else np.savez)(out, **ARRAYS)
    return out.getvalue()


def read_all(path: Path) -> int:
    """Every array, whole and in runs; the numbers read."""
    trace, count = open_trace(path), 0
    for name in trace.names:
        whole = trace.read(name)
        assert trace.shape(name) == whole.shape
        count += sum(cells.size for cells in trace.cells(name))
        assert count >= whole.size
    trace.ids()
    trace.decoder_ids()
    return count


@COUNTS
@pytest.mark.parametrize("deflated", [False, True])
def test_broken_archives(tmp_path, deflated, count):
    path = tmp_path / "trace.npz"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        read_or_refused(lambda: read_all(path), path)

    hold(count, check, data=damaged(packed(deflated=deflated)))


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode("latin-1", "replace") + b"\n"
    return b"\x93NUMPY\x01\x00" + (len(text) & 0xFFFF).to_bytes(2, "little") + text[:0xFFFF] + data


@COUNTS
def test_headers_that_cannot_be(tmp_path, count):
    path = tmp_path / "trace.npz"

    def check(descr: str, order: str, shape: str, data: bytes) -> None:
        header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("value/a.npy", npy(header, data))
        read_or_refused(lambda: read_all(path), path)

    kinds = ["'<f8'", "'|O'", "'<U9'", "'|V0'", "'<f4'", "'?'", "None", "'<M8[D]'", "[('a', '<f8')]"]
    shapes = [
        "()",
        "(1,)",
        "(0,)",
        "(-1,)",
        "(2, 3)",
        f"({2**62}, 4)",
        "(1e3,)",
        "None",
        "(True,)",
        f"({10**30},)",
        "[2]",
    ]
    strategies = {"descr": kinds, "order": ["False", "True", "None", "2"], "shape": shapes}
    sampled = {name: st.sampled_from(values) for name, values in strategies.items()}
    hold(count, check, **sampled, data=st.binary(max_size=64))


def test_a_small_file_of_very_many_zeros_is_read_a_run_at_a_time(tmp_path):
    path, shape = tmp_path / "trace.npz", (5 * RUN,)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("value/a.npy", npy(header, bytes(8 * shape[0])))
    assert read_or_refused(lambda: sum(cells.size for cells in open_trace(path).cells("a")), path) == shape[0]
