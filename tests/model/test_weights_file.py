"""Weights in a file that stays open: any window of them, and what is said when the file changes meanwhile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES
from safetensors.numpy import save_file

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.checkpoint import fit, open_tensors, read_config, stored_weights
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.tensors import Tensors, open_file

TABLE = np.arange(60 * 40, dtype="<f4").reshape(60, 40)
VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all": lambda table: table,
    "turned": lambda table: table.T,
    "rows": lambda table: table[7:19],
    "columns": lambda table: table[:, 3:5],
    "a window, turned": lambda table: table[10:40, 3:30].T,
    "every third": lambda table: table[::3, ::7],
    "of heads": lambda table: table.reshape(4, 15, 40)[1:3, 2:9].swapaxes(0, 2),
    "a line": lambda table: table[5],
    "a cell": lambda table: table[5, 6],
    "nothing": lambda table: table[3:3],
    "copied": lambda table: table[[5, 1]],
}


@pytest.fixture(params=["F32", "F64", "F16", "BF16"])
def tensors(request, tmp_path) -> Tensors:
    """The table in a file that is read a few hundred bytes at a time; its data begin at an odd byte."""
    stored = {"F32": "<f4", "F64": "<f8", "F16": "<f2"}.get(request.param)
    data = TABLE.astype(stored).tobytes() if stored else (TABLE.view("<u4") >> 16).astype("<u2").tobytes()
    place = [0, len(data)]
    header = f'{{"table":{{"dtype":"{request.param}","shape":[60,40],"data_offsets":{place}}}}}'.encode()
    header += b" " * (len(header) % 2 == 0)
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    opened = open_file(tmp_path / "model.safetensors")
    opened.by_name["table"].file.chunk = 300
    return opened


def stored_table(tensors: Tensors) -> np.ndarray:
    """The table as the file can say it."""
    kind = tensors.find("table").kind
    if kind == "BF16":
        return (TABLE.view("<u4") >> 16 << 16).view("<f4")
    return TABLE.astype({"F32": "f4", "F64": "f8", "F16": "f2"}[kind])


@pytest.mark.parametrize("view", VIEWS)
def test_any_view_of_a_tensor_is_what_a_slice_of_it_is(tensors, view):
    view_of_file, wanted = tensors.read("table", VIEWS[view]), VIEWS[view](stored_table(tensors))
    assert view_of_file.dtype == wanted.dtype
    assert view_of_file.flags.aligned
    np.testing.assert_array_equal(view_of_file, wanted)


@pytest.mark.parametrize("rows", [[0, 1, 2, 9, 30, 31, 59], [4], []])
def test_rows_by_their_numbers(tensors, rows):
    rows = np.array(rows, dtype=np.int64)
    np.testing.assert_array_equal(tensors.read("table", np.asarray, rows), stored_table(tensors)[rows])
    turned = tensors.read("table", np.transpose, rows[rows < 40])
    np.testing.assert_array_equal(turned, stored_table(tensors).T[rows[rows < 40]])


# Files that change


QUERY, KEY = "encoder.0.self_attention.query", "encoder.0.self_attention.key"


def lost(model: Model, step: str) -> str:
    """The one line that says why a step cannot be computed."""
    with pytest.raises(InputError) as caught:
        model.trace(ids=[1, 2])[step]
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize("left", [0, 8, 5000])
def test_a_file_that_is_cut_while_it_is_open_is_one_line(folder, left):
    model = Model.load(folder, device="cpu")
    before = model.trace(ids=[1, 2])[QUERY].copy()
    os.truncate(folder / "model.safetensors", left)
    line = lost(model, KEY)
    assert f"{folder / 'model.safetensors'}: cut while it was open, tensor {KEY}.weight is lost" in line
    assert np.array_equal(model.trace(ids=[1, 2])[QUERY], before), "what is read stays"


def test_a_file_that_is_written_over_while_it_is_open_is_one_line(folder):
    model, path = Model.load(folder, device="cpu"), folder / "model.safetensors"
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data[:100])
    os.utime(path, ns=(1, 1))
    assert "written to while it was open, tensor embedding.tokens.weight is lost" in lost(model, KEY)


def test_another_file_under_its_name_changes_nothing(folder, tmp_path):
    model, path = Model.load(folder, device="cpu"), folder / "model.safetensors"
    wanted = Model.load("encoder", device="cpu").trace(ids=[1, 2])[KEY]
    save_file({"other": np.zeros(3, "f4")}, tmp_path / "other")
    (tmp_path / "other").replace(path)
    assert np.array_equal(model.trace(ids=[1, 2])[KEY], wanted)
    shutil.rmtree(folder)
    assert model.trace(ids=[1, 2])["output.logits"].shape == (2, 8)


def test_files_are_closed_with_the_model(folder):
    def descriptors() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no list of open files here")
    before = descriptors()
    model = Model.load(folder, device="cpu")
    assert descriptors() > before
    del model
    assert descriptors() == before


@pytest.mark.parametrize(
    "family", sorted(path.name for path in REFERENCES.iterdir() if (path / "config.json").exists())
)
def test_no_family_reads_the_mapping(family):
    """A part taken of a tensor is a view of where it lies, so that nothing but `WeightsFile` touches the file."""
    config = read_config(REFERENCES / family)
    config, tensors = fit(config, open_tensors(REFERENCES / family))
    program = config.program(Lengths(1, 1))
    for place in stored_weights(tensors, config, program).places.values():
        tensor = tensors.find(place.name)
        whole = tensor.file.layout(tensor.start, tensor.stop, np.dtype(np.uint8), (tensor.stop - tensor.start,))
        whole = whole.view("<u2" if tensor.kind in ("F16", "BF16") else "<f8" if tensor.kind == "F64" else "<f4")
        assert np.may_share_memory(place.take(whole.reshape(tensor.shape)), whole), place.name
