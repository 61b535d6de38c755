"""Large checkpoints: only the rows and weights that are needed are read, and no more than memory holds."""

from __future__ import annotations

import json
import resource
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from saved import TENSOR, write_raw

from tui_transformer.engine import parts, weights
from tui_transformer.engine.edits import Edit
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.tensors import open_file


def pages_read() -> int:
    """Pages of memory that this process has asked for so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def test_a_file_of_many_gigabytes_costs_its_header(tmp_path):
    path, size = tmp_path / "model.safetensors", 48 << 30
    header = {
        "small": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "large": {"dtype": "F32", "shape": [size // 4], "data_offsets": [8, 8 + size]},
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + struct.pack("<2f", 1.5, -2.0))
        file.truncate(8 + len(text) + 8 + size)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system writes holes")
    tracemalloc.start()
    faults = pages_read()
    tensors = open_file(path)
    assert tensors.read("small", lambda tensor: tensor).tolist() == [1.5, -2.0]
    assert tensors.read("large", lambda tensor: tensor[-3:]).tolist() == [0.0, 0.0, 0.0]
    assert pages_read() - faults < 1000  # of twelve million
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


@pytest.fixture
def large(tmp_path) -> Model:
    """Embeddings of more cells than are read at once, in bfloat16; the row of token 900 is not finite."""
    Model.load("decoder", vocabulary="english", d_model=16, device="cpu").save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    raw = {name: ("BF16", (array.view("<u4") >> 16).astype("<u2")) for name, array in tensors.items()}
    raw[TABLE][1][900] = 0x7F80
    write_raw(tmp_path / "model.safetensors", raw)
    return in_parts(tmp_path)


def in_parts(folder: Path, **sizes: int) -> Model:
    """A model of whose weights those of some thousand cells are read in parts."""
    model = Model.load(folder, device="cpu")
    return replace(model, weights=replace(model.weights, large=1 << 12, **sizes))


TABLE = "embedding.tokens.weight"
ROWS = [3, 700, 3, 12]


def test_of_a_large_table_only_the_rows_that_are_looked_up_are_read(large):
    trace = large.trace(ids=ROWS)
    whole = np.array(trace["embedding.tokens"])
    seen = trace.explain("embedding.tokens", row=1, column=2)
    rows = trace.window(TABLE, (range(699, 701), range(16)))
    assert TABLE not in large.weights.held
    assert (seen.stored, rows[1, 2]) == (whole[1, 2], whole[1, 2])
    with pytest.raises(InputError, match=f"tensor {TABLE} holds NaN or infinity"):
        in_parts(large.folder).trace(ids=[899, 900])["embedding.tokens"]


def test_a_row_that_is_looked_up_is_that_of_the_whole_table(large):
    whole = in_parts(large.folder)
    table = np.array(whole.weights.file.part(TABLE, slice(0, 900)))
    whole.weights.held[TABLE] = table
    for trace in (whole.trace(ids=ROWS), whole.trace(ids=[ROWS, ROWS[::-1]])):
        other = large.trace(ids=ROWS if trace.batch == 1 else [ROWS, ROWS[::-1]])
        assert np.array_equal(trace["decoder.0.output"], other["decoder.0.output"])


def test_an_edited_table_is_read_whole(large):
    edited = in_parts(large.folder).trace(ids=ROWS).edited([Edit(TABLE, (3, 2), 5.0)])
    with pytest.raises(InputError, match=f"tensor {TABLE} holds NaN or infinity"):
        edited.window(TABLE, (range(4), range(4)))


def test_a_model_larger_than_memory_is_computed_with_weights_read_again(large, monkeypatch):
    wanted = np.array(large.trace(ids=ROWS)["decoder.0.output"])
    small = in_parts(large.folder, small=1)
    taken = sum(array.nbytes for name, array in large.weights.held.items())
    free = taken // 2
    monkeypatch.setattr(weights, "available_memory", lambda: free - held_bytes(small))
    monkeypatch.setattr(parts, "available_memory", lambda: free - held_bytes(small))
    for _ in range(2):
        assert np.array_equal(small.trace(ids=ROWS, budget=0)["decoder.0.output"], wanted)
        assert 0 < held_bytes(small) < free


def held_bytes(model: Model) -> int:
    return sum(int(array.nbytes) for array in model.weights.held.values())


def test_a_weight_that_does_not_fit_into_memory_is_refused_before_it_is_read(folder, monkeypatch):
    monkeypatch.setattr(parts, "available_memory", lambda: 300)
    loaded = (Model.load(folder, device="cpu", dtype=dtype).weights for dtype in ("float32", "float64"))
    single, double = (replace(each, small=1) for each in loaded)
    assert single.get(TENSOR, (8, 8)).shape == (8, 8), "256 B"
    with pytest.raises(InputError, match=f"{TENSOR} takes 512 B of memory and 300 B are free"):
        double.get(TENSOR, (8, 8))
    with pytest.raises(InputError, match="the weights take, as float64, 512 B of memory"):
        double.check_room({TENSOR: (8, 8)})
