"""Broken dumps of every format, and maps of names: each read or refused in one line that names a file."""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import COUNTS, as_json, broken_json, changed, damaged, hold, hold_file, read_or_refused
from hypothesis import strategies as st
from refusing import refuses
from test_dumps import CALLBACK, X, Y
from writers import STYLES, Write

from tui_transformer.diagnosis.diagnose import diagnose
from tui_transformer.diagnosis.dumps import npz_reader, open_dump
from tui_transformer.diagnosis.dumps.npz_reader import MOST_ARRAYS, RUN, open_trace
from tui_transformer.diagnosis.naming import read_map
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.session.edit_format import written

MOST_CELLS = 1 << 20
"""Numbers of a tensor, at most: far more than a small file can hold, far fewer than a hostile one can claim."""


def read_all(path: Path) -> None:
    """Every value of a dump, whose shapes are those that it says."""
    for tensor in open_dump(path).tensors.values():
        values = tensor.values
        assert values.array.shape == tuple(tensor.shape), tensor.name
        assert values.array.size <= MOST_CELLS, tensor.name


def with_shapes(folder: Path, arrays: dict[str, np.ndarray], ids: list[int]) -> Path:
    (folder / "shapes.json").write_text(json.dumps({name: array.shape for name, array in arrays.items()}))
    return STYLES["raw"](folder, arrays, ids)


FORMATS: dict[str, Write] = {**STYLES, "raw": with_shapes}
ANY = ("npz", "safetensors", "folder of npy", "raw", "text files", "NumPy print", "debugger")


def dump_by(style: str, folder: Path) -> Path:
    """A dump of X and Y in a folder of its own."""
    folder.mkdir()
    return FORMATS[style](folder, {"my.x": X, "my.y": Y}, [1, 2])


@COUNTS
@pytest.mark.parametrize("style", ANY)
def test_broken_dumps(tmp_path, style, count):
    path = dump_by(style, tmp_path / "dump")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    whole = [file.read_bytes() for file in files]

    def check(which: int, data: st.DataObject) -> None:
        for file, content in zip(files, whole, strict=True):
            file.write_bytes(content)
        files[which].write_bytes(data.draw(damaged(whole[which])))
        read_or_refused(lambda: read_all(path), path, *files)

    hold(count, check, which=st.integers(0, len(files) - 1), data=st.data())


@pytest.mark.parametrize("left", [0, 60, 130])
@pytest.mark.parametrize("style", ANY[:4])
def test_a_dump_that_is_cut_while_it_is_open(tmp_path, style, left):
    path = dump_by(style, tmp_path / "dump")
    tensors = open_dump(path).tensors
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".json"]
    for file in files:
        os.truncate(file, min(left, file.stat().st_size - 1))
    for name, right in {"my.x": X, "my.y": Y}.items():
        values = read_or_refused(lambda name=name: tensors[name].values, *files)
        assert values is None or (values.array == right).all()


def test_a_dump_that_is_another_one_when_it_is_read(tmp_path):
    np.save(tmp_path / "x.npy", X)
    tensors = open_dump(tmp_path).tensors
    np.save(tmp_path / "x.npy", Y)
    refuses(r"x\.npy: was written to while it was read", lambda: tensors["x"].values)


@pytest.mark.parametrize("fill", [" ", "9", "{", "x = (", "1 ", "-", "layer ", "9x"])
@pytest.mark.parametrize("name", ["one.log", "callback.log", "names.txt"])
def test_a_line_of_a_million_characters_takes_no_longer_than_many_lines(tmp_path, name, fill):
    path = tmp_path / name
    begin = CALLBACK if name == "callback.log" else "x:\n1 2\n"
    path.write_text(begin + (fill * 1_000_000)[:1_000_000] + "\n")
    read_or_refused(lambda: read_map(path) if name == "names.txt" else read_all(path), path)


@COUNTS
@pytest.mark.parametrize("style", ["debugger", "raw"])
def test_json_of_dumps_that_says_something_else(tmp_path, style, count):
    path = dump_by(style, tmp_path / "dump")
    file = path if path.is_file() else path / "shapes.json"
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    documents = changed(json.loads(file.read_bytes())).map(as_json)
    hold_file(count, file, documents, lambda: read_all(path), path, *files)


@COUNTS
def test_broken_logs_of_llama_cpp(tmp_path, count):
    path = tmp_path / "eval.log"
    hold_file(count, path, damaged(CALLBACK.encode()), lambda: read_all(path))


def test_a_log_of_llama_cpp_that_claims_more_than_memory_or_a_graph_holds(tmp_path, monkeypatch):
    path = tmp_path / "eval.log"
    rows = "  [ 1.0, 2.0, 3.0, ..., 4.0, 5.0, 6.0 ]\n" * 6
    path.write_text(f"ggml_debug: foo = (f32) ADD(a{{1, 1}}, b{{1, 1}}) = {{100000, 100000, 1, 1}}\n{rows}")
    refuses(r"eval\.log: foo: is of 10,000,000,000 numbers, of which its corners", lambda: open_dump(path))
    # more tensors than a graph has
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.formats.MOST", 2)
    path.write_text("".join(CALLBACK.replace("Qcur", f"Q{i}cur") for i in range(3)))
    refuses(r"eval\.log: more than 2 tensors", lambda: open_dump(path))


@COUNTS
@pytest.mark.parametrize("name", ["x.npy", "x.bin", "x.f16", "x.bf16", "x.i64"])
def test_single_files_of_numbers(tmp_path, name, count):
    folder = tmp_path / "dump"
    folder.mkdir()
    path = folder / name
    np.save(folder / "x.npy", X)
    whole = (folder / "x.npy").read_bytes() if name == "x.npy" else X.tobytes()
    (folder / "x.npy").unlink()
    shapes = {"x": [2, 3], "x.bin": {"shape": [3, 2]}, "deep": {"ne": [3, 2]}}

    def check(content: bytes, document: Any) -> None:
        path.write_bytes(content)
        (folder / "shapes.json").write_bytes(as_json(document))
        read_or_refused(lambda: read_all(folder), *folder.iterdir())

    hold(count, check, content=damaged(whole), document=st.one_of(st.just(shapes), changed(shapes)))


@COUNTS
@pytest.mark.parametrize("name", ["names.json", "names.txt"])
def test_broken_maps_of_names(tmp_path, name, count):
    path = tmp_path / name
    names = {"my.scores": "encoder.0.self_attention.scores", "b": "embedding.output"}
    lines = "".join(f"{ours} = {step}  # so\n" for ours, step in names.items()).encode()

    def read() -> None:
        assert all(isinstance(step, str) for step in read_map(path).values())

    hold_file(count, path, broken_json(names) if path.suffix == ".json" else damaged(lines), read)


def test_names_that_no_file_can_have() -> None:
    for name in ("a" * 5000, "a\0b", "no/such\n[red]file.npz"):
        with pytest.raises(InputError):
            open_dump(Path(name))


# NPZ and NPY files that promise more than anybody wants: refused by name, before anything is inflated


IDS = np.array([[1, 2, 3]])
HUGE = (1 << 30) - 64
SCORES = "encoder.0.self_attention.scores"


def npy(shape: str, descr: str = "'<f4'", version: bytes = b"\x01\x00", order: str = "False") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode("latin-1", "replace")
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\x01\x00" else "<I", len(header)) + header


def promising(path: Path, name: str, count: int, descr: str = "'<f4'") -> Path:
    """A file of a few bytes whose list says that an array of four-byte numbers is whole, beside token IDs."""
    head = npy(f"({count},)", descr)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.npy", head)
        if name != "input_ids":
            with archive.open("input_ids.npy", "w") as member:
                np.save(member, IDS)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, len(head) + 4 * count)
    path.write_bytes(data)
    return path


@pytest.fixture
def encoder() -> Model:
    return Model.load("encoder")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes of arrays were asked for."""
    asked: list[int] = []
    whole = npz_reader._whole
    monkeypatch.setattr(npz_reader, "_whole", lambda member, size: asked.append(size) or whole(member, size))
    return asked


def test_an_array_larger_than_its_step_is_refused_by_name_and_not_inflated(tmp_path, encoder, read):
    dump = open_dump(promising(tmp_path / "a.npz", SCORES, HUGE))
    refuses(rf"{SCORES}.* {HUGE} does not fit", lambda: diagnose(dump, encoder))
    assert sum(read) == IDS.nbytes
    # of an edit
    path = promising(tmp_path / "a.npz", "v", HUGE)
    read.clear()
    refuses(rf"a\.npz: v: has {HUGE:,} numbers", lambda: written(encoder.program(3), f"0.output += {path}:v"))
    assert read == []


def test_an_array_that_is_no_step_is_never_inflated(tmp_path, encoder, read):
    path = promising(tmp_path / "a.npz", "no.step.at.all", HUGE)
    with zipfile.ZipFile(path, "a") as archive, archive.open("embedding.output.npy", "w") as member:
        np.save(member, np.zeros((3, encoder.config.d_model), np.float32))
    assert "no.step.at.all: no step of this name" in diagnose(open_dump(path), encoder).unmatched
    assert sum(read) == IDS.nbytes + 3 * encoder.config.d_model * 4


@pytest.mark.parametrize("name", ["input_ids", "attention_mask"])
def test_more_tokens_than_a_text_can_have_are_refused_by_name(tmp_path, encoder, read, name):
    path = promising(tmp_path / "a.npz", name, HUGE, "'<i4'")
    refuses(rf"a\.npz: {name}: has {HUGE:,} numbers", lambda: diagnose(open_dump(path), encoder))
    trace = open_trace(path)
    refuses(rf"a\.npz: {name}: has {HUGE:,} numbers", lambda: trace.whole_numbers(name))
    assert sum(read) <= IDS.nbytes


def test_lists_and_headers_that_are_too_long_are_not_read(tmp_path, monkeypatch):
    path, count = tmp_path / "a.npz", MOST_ARRAYS + 1
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(count):
            archive.writestr(f"{i}.npy", b"")
    monkeypatch.setattr(npz_reader, "header_of", None)
    refuses(rf"a\.npz: holds {count:,} arrays", lambda: open_dump(path))
    monkeypatch.undo()
    # a list of names
    np.savez(path, **{f"a{i}": IDS for i in range(30)})
    monkeypatch.setattr(npz_reader, "LARGEST_LIST", 1000)
    refuses(r"a\.npz: not a whole NPZ file \(its list of names has", lambda: open_trace(path))
    monkeypatch.undo()
    # a header that promises to be long is not inflated
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 28) + bytes(1 << 20))
    refuses(r"a\.npz: a: not a whole NPZ file \(its header is too long\)", lambda: open_trace(path).shape("a"))


def test_an_array_that_is_packed_otherwise_or_ends_early_is_refused_by_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive, archive.open("a.npy", "w") as member:
        np.save(member, IDS)
    refuses(r"a\.npz: a: is packed otherwise", lambda: open_trace(tmp_path / "a.npz").read("a"))
    # ends early
    trace = open_trace(promising(tmp_path / "a.npz", "a", 1000))
    for use in (trace.read, lambda name: list(trace.cells(name))):
        refuses(r"a\.npz: a: not a whole NPZ file", lambda use=use: use("a"))


IMPOSSIBLE = [
    *(f"({2**62}, 4)", f"({2**63}, 2, 0)", f"({10**30},)", f"({2**32}, {2**32})", "(-1,)", "(-2, -2)"),
    *(f"({'1, ' * 40})", "(1L,)", r"('\d',)", "(" * 300),
]


@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00"])
def test_an_impossible_shape_is_one_line_without_a_warning(tmp_path, version):
    path = tmp_path / "x.npy"
    for shape in IMPOSSIBLE:
        path.write_bytes(npy(shape, version=version) + bytes(16))
        with warnings.catch_warnings(record=True, action="always") as said:
            refuses(r"x\.npy: not a whole NPY file", lambda: open_dump(path))
        assert said == [], shape


def test_two_arrays_of_the_same_name_and_shape_are_read_as_before(tmp_path):
    both = {"a": np.arange(12.0).reshape(3, 4), "b": np.asfortranarray(np.ones((2, 3), np.float16))}
    np.savez_compressed(tmp_path / "a.npz", **both)
    for name, array in both.items():
        np.save(tmp_path / f"{name}.npy", array)
        for path in (tmp_path / "a.npz", tmp_path / f"{name}.npy"):
            assert np.array_equal(open_dump(path).tensors[name].values.array, array)


# Broken archives: read, or refused in one line that names the file

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


def read_npz(path: Path) -> int:
    """Every array, whole and in runs; the numbers read."""
    trace, count = open_trace(path), 0
    for name in trace.names:
        whole = trace.read(name)
        assert trace.shape(name) == whole.shape
        count += sum(cells.size for cells in trace.cells(name))
        assert count >= whole.size
    trace.whole_numbers(*npz_reader.IDS)
    trace.whole_numbers(*npz_reader.DECODER_IDS)
    return count


@COUNTS
@pytest.mark.parametrize("deflated", [False, True])
def test_broken_archives(tmp_path, deflated, count):
    path = tmp_path / "trace.npz"
    hold_file(count, path, damaged(packed(deflated=deflated)), lambda: read_npz(path))


@COUNTS
def test_headers_that_cannot_be(tmp_path, count):
    path = tmp_path / "trace.npz"

    def check(descr: str, order: str, shape: str, data: bytes) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("value/a.npy", npy(shape, descr, order=order) + data)
        read_or_refused(lambda: read_npz(path), path)

    kinds = ["'<f8'", "'|O'", "'<U9'", "'|V0'", "'<f4'", "'?'", "None", "'<M8[D]'", "[('a', '<f8')]"]
    shapes = ["()", "(1,)", "(0,)", "(-1,)", "(2, 3)", "(1e3,)", "None", "(True,)", "[2]"]
    shapes += [f"({2**62}, 4)", f"({10**30},)"]
    strategies = {"descr": kinds, "order": ["False", "True", "None", "2"], "shape": shapes}
    sampled = {name: st.sampled_from(values) for name, values in strategies.items()}
    hold(count, check, **sampled, data=st.binary(max_size=64))


def test_a_small_file_of_very_many_zeros_is_read_a_run_at_a_time(tmp_path):
    path, shape = tmp_path / "trace.npz", (5 * RUN,)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("value/a.npy", npy(str(shape), "'<f8'") + bytes(8 * shape[0]))
    assert read_or_refused(lambda: sum(cells.size for cells in open_trace(path).cells("a")), path) == shape[0]
