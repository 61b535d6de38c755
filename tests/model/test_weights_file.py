"""Weights in a file that stays open: windows of them, no more than memory holds, and what nothing reads."""

from __future__ import annotations

import json
import os
import resource
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES
from refusing import refuses
from safetensors.numpy import load_file, save_file
from saved import TENSOR, write_raw

from tui_transformer.engine import parts, weights
from tui_transformer.engine.edits import Edit
from tui_transformer.errors import InputError
from tui_transformer.model import Model, weights_file
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
QUERY, KEY = "encoder.0.self_attention.query", "encoder.0.self_attention.key"
EMBEDDING = "embedding.tokens.weight"
ROWS = [3, 700, 3, 12]


@pytest.fixture(params=["F32", "F64", "F16", "BF16"])
def tensors(request, tmp_path, monkeypatch) -> Tensors:
    """The table in a file that is read a few hundred bytes at a time; its data begin at an odd byte."""
    stored = {"F32": "<f4", "F64": "<f8", "F16": "<f2"}.get(request.param)
    data = TABLE.astype(stored).tobytes() if stored else (TABLE.view("<u4") >> 16).astype("<u2").tobytes()
    place = [0, len(data)]
    header = f'{{"table":{{"dtype":"{request.param}","shape":[60,40],"data_offsets":{place}}}}}'.encode()
    header += b" " * (len(header) % 2 == 0)
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    monkeypatch.setattr(weights_file, "CHUNK", 300)
    return open_file(tmp_path / "model.safetensors")


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
def lost(model: Model, step: str) -> str:
    """The one line that says why a step cannot be computed."""
    return refuses("", lambda: model.trace(ids=[1, 2])[step])


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


@pytest.mark.parametrize("family", sorted(path.name for path in REFERENCES.iterdir()))
def test_everything_of_the_references_is_read_and_not_by_a_mapping(family):
    """A part taken of a tensor is a view of where it lies, so that nothing but `WeightsFile` touches the file."""
    assert Model.load(REFERENCES / family, device="cpu").unread == ()
    config = read_config(REFERENCES / family)
    config, tensors = fit(config, open_tensors(REFERENCES / family))
    program = config.program(Lengths(1, 1))
    for place in stored_weights(tensors, config, program).places.values():
        tensor = tensors.find(place.name)
        whole = tensor.file.layout(tensor.start, tensor.stop, np.dtype(np.uint8), (tensor.stop - tensor.start,))
        whole = whole.view("<u2" if tensor.kind in ("F16", "BF16") else "<f8" if tensor.kind == "F64" else "<f4")
        assert np.may_share_memory(place.take(whole.reshape(tensor.shape)), whole), place.name


# Large checkpoints


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
    raw[EMBEDDING][1][900] = 0x7F80
    write_raw(tmp_path / "model.safetensors", raw)
    return in_parts(tmp_path)


def in_parts(folder: Path, **sizes: int) -> Model:
    """A model of whose weights those of some thousand cells are read in parts."""
    model = Model.load(folder, device="cpu")
    return replace(model, weights=replace(model.weights, large=1 << 12, **sizes))


def test_of_a_large_table_only_the_rows_that_are_looked_up_are_read_as_of_the_whole_unless_it_is_edited(large):
    trace = large.trace(ids=ROWS)
    whole = np.array(trace["embedding.tokens"])
    seen = trace.explain("embedding.tokens", row=1, column=2)
    rows = trace.window(EMBEDDING, (range(699, 701), range(16)))
    assert EMBEDDING not in large.weights.held
    assert (seen.stored, rows[1, 2]) == (whole[1, 2], whole[1, 2])
    with pytest.raises(InputError, match=f"tensor {EMBEDDING} holds NaN or infinity"):
        in_parts(large.folder).trace(ids=[899, 900])["embedding.tokens"]
    # edited, it is read whole
    edited = in_parts(large.folder).trace(ids=ROWS).edited([Edit(EMBEDDING, (3, 2), 5.0)])
    refuses(f"tensor {EMBEDDING} holds NaN or infinity", lambda: edited.window(EMBEDDING, (range(4), range(4))))
    # the same as of the whole table
    whole = in_parts(large.folder)
    table = np.array(whole.weights.file.part(EMBEDDING, slice(0, 900)))
    whole.weights.held[EMBEDDING] = table
    for trace in (whole.trace(ids=ROWS), whole.trace(ids=[ROWS, ROWS[::-1]])):
        other = large.trace(ids=ROWS if trace.batch == 1 else [ROWS, ROWS[::-1]])
        assert np.array_equal(trace["decoder.0.output"], other["decoder.0.output"])


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
    refuses(f"{TENSOR} takes 512 B of memory and 300 B are free", lambda: double.get(TENSOR, (8, 8)))
    refuses("the weights take, as float64, 512 B of memory", lambda: double.check_room({TENSOR: (8, 8)}))


# Tensors that nothing reads


def with_tensors(folder: Path, family: str, **more: np.ndarray) -> Model:
    """A reference with more tensors in its file."""
    shutil.copy(REFERENCES / family / "config.json", folder / "config.json")
    tensors = load_file(REFERENCES / family / "model.safetensors")
    save_file(tensors | {name.replace("__", "."): array for name, array in more.items()}, folder / "model.safetensors")
    return Model.load(folder, device="cpu")


def test_a_tensor_that_no_step_reads_is_named_but_no_copy_of_what_is_read(tmp_path):
    model = with_tensors(tmp_path, "bert", bert__pooler__dense__weight=np.ones((32, 32), "f4"))
    assert model.unread == ("bert.pooler.dense.weight",)
    assert model.unread_said == f"{model.name}: nothing here reads a tensor of the file: bert.pooler.dense.weight"
    # a copy, and what is none
    tensors = load_file(REFERENCES / "bert" / "model.safetensors")
    bias = tensors["cls.predictions.bias"]
    assert with_tensors(tmp_path, "bert", cls__predictions__decoder__bias=bias).unread == ()
    other = with_tensors(tmp_path, "bert", cls__predictions__decoder__bias=bias + 1)
    assert other.unread in (("cls.predictions.decoder.bias",), ("cls.predictions.bias",))
    # many
    many = replace(model, name="x", unread=tuple(f"tensor {i}" for i in range(1200)))
    named = "1,200 tensors of the file: tensor 0, tensor 1, tensor 2 and 1,197 more"
    assert many.unread_said == f"x: nothing here reads {named}"
    # nothing
    assert Model.load("encoder").unread_said is None


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "bert__embeddings__position_ids"),
        ("gpt2", "transformer__h__0__attn__masked_bias"),
        ("gpt_neox", "gpt_neox__layers__0__attention__rotary_emb__inv_freq"),
        ("llama", "model__layers__0__self_attn__rotary_emb__inv_freq"),
        ("t5", "decoder__block__0__layer__1__EncDecAttention__relative_attention_bias__weight"),
    ],
)
def test_buffers_that_are_known_to_do_nothing_are_not_named(tmp_path, family, name):
    assert with_tensors(tmp_path, family, **{name: np.ones((1, 4), "f4")}).unread == ()
