"""Broken dumps of every format, and maps of names: each read or refused in one line that names a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import COUNTS, as_json, broken_json, changed, damaged, hold, hold_file, read_or_refused
from hypothesis import strategies as st
from test_dumps import CALLBACK, FORMATS, X, Y, debugger, npy_folder, npz, raw_folder, safetensors

from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.diagnosis.naming import read_map
from tui_transformer.errors import InputError

MOST_CELLS = 1 << 20
"""Numbers of a tensor, at most: far more than a small file can hold, far fewer than a hostile one can claim."""


def read_all(path: Path) -> None:
    """Every value of a dump, whose shapes are those that it says."""
    for tensor in open_dump(path).tensors.values():
        values = tensor.values
        assert values.array.shape == tuple(tensor.shape), tensor.name
        assert values.array.size <= MOST_CELLS, tensor.name


def written(write: Any, folder: Path) -> Path:
    """A dump in a folder of its own."""
    folder.mkdir()
    return Path(write(folder))


@COUNTS
@pytest.mark.parametrize("write", FORMATS)
def test_broken_dumps(tmp_path, write, count):
    path = written(write, tmp_path / "dump")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    whole = [file.read_bytes() for file in files]

    def check(which: int, data: st.DataObject) -> None:
        for file, content in zip(files, whole, strict=True):
            file.write_bytes(content)
        files[which].write_bytes(data.draw(damaged(whole[which])))
        read_or_refused(lambda: read_all(path), path, *files)

    hold(count, check, which=st.integers(0, len(files) - 1), data=st.data())


@pytest.mark.parametrize("left", [0, 60, 130])
@pytest.mark.parametrize("write", [npz, safetensors, npy_folder, raw_folder])
def test_a_dump_that_is_cut_while_it_is_open(tmp_path, write, left):
    path = written(write, tmp_path / "dump")
    tensors = open_dump(path).tensors
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".json"]
    for file in files:
        os.truncate(file, min(left, file.stat().st_size - 1))
    for name, right in {"x": X, "y": Y}.items():
        values = read_or_refused(lambda name=name: tensors[name].values, *files)
        assert values is None or (values.array == right).all()


def test_a_dump_that_is_another_one_when_it_is_read(tmp_path):
    tensors = open_dump(npy_folder(tmp_path)).tensors
    np.save(tmp_path / "x.npy", Y)
    with pytest.raises(InputError, match=r"x\.npy: was written to while it was read"):
        _ = tensors["x"].values


@pytest.mark.parametrize("fill", [" ", "9", "{", "x = (", "1 ", "-", "layer ", "9x"])
@pytest.mark.parametrize("name", ["one.log", "callback.log", "names.txt"])
def test_a_line_of_a_million_characters_takes_no_longer_than_many_lines(tmp_path, name, fill):
    path = tmp_path / name
    begin = CALLBACK if name == "callback.log" else "x:\n1 2\n"
    path.write_text(begin + (fill * 1_000_000)[:1_000_000] + "\n")
    read_or_refused(lambda: read_map(path) if name == "names.txt" else read_all(path), path)


@COUNTS
@pytest.mark.parametrize("write", [debugger, raw_folder])
def test_json_of_dumps_that_says_something_else(tmp_path, write, count):
    path = written(write, tmp_path / "dump")
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
    with pytest.raises(InputError, match=r"eval\.log: foo: is of 10,000,000,000 numbers, of which its corners"):
        open_dump(path)
    # more tensors than a graph has
    monkeypatch.setattr("tui_transformer.diagnosis.dumps.formats.MOST", 2)
    path.write_text("".join(CALLBACK.replace("Qcur", f"Q{i}cur") for i in range(3)))
    with pytest.raises(InputError, match=r"eval\.log: more than 2 tensors"):
        open_dump(path)


@COUNTS
@pytest.mark.parametrize("name", ["x.npy", "x.bin", "x.f16", "x.bf16", "x.i64"])
def test_single_files_of_numbers(tmp_path, name, count):
    folder = tmp_path / "dump"
    folder.mkdir()
    path = folder / name
    whole = npy_folder(folder).joinpath("x.npy").read_bytes() if name == "x.npy" else X.tobytes()
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
