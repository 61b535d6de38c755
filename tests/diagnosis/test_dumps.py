"""Every format is read to the same numbers, and what cannot be read is refused with what to do."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from dumping import coarse_bits, dump_of
from refusing import refuses
from safetensors.numpy import save_file

from tui_transformer.diagnosis.dumps import open_dump

X = np.array([[0.5, -1.25, 3.0], [1e-3, 2.0, -np.inf]], np.float32)
Y = np.arange(12, dtype=np.float32).reshape(2, 3, 2) / 7


def test_headings_and_rows_of_a_log_are_read_as_they_are_printed(tmp_path: Path) -> None:
    # headings of layers and heads count for those after them, and are counted
    dump = dump_of("== Layer 0 ==\nHead 1\nscores:\n1 2\n3 4\nlayer 1\nscores:\n5 6\n7 8\n", tmp_path)
    assert list(dump.tensors) == ["layer 0 scores head 1", "layer 1 scores"]
    assert list(dump_of("Q:\n1 2\nQ:\n3 4\nQ:\n5 6\n", tmp_path).tensors) == ["Q", "Q (2)", "Q (3)"]
    array = dump_of("Q:\n-inf nan\ninf -nan\n", tmp_path).tensors["Q"].values.array
    np.testing.assert_array_equal(array, [[-np.inf, np.nan], [np.inf, np.nan]])
    # digits say how exact numbers are
    dump = dump_of("a:\n0.1235 1.2346\nb:\n0.25 1.234567\n", tmp_path)
    assert dump.tensors["a"].values.precision.absolute == pytest.approx(5e-5)
    assert dump.tensors["b"].values.precision.relative == pytest.approx(5e-7)
    refuses(r"scores: rows of different lengths", lambda: dump_of("scores:\n1 2\n3 4 5\n", tmp_path))


def test_bf16_and_bare_numbers_are_read_as_the_shapes_beside_them_say(tmp_path: Path) -> None:
    bits = coarse_bits(X)
    np.savez(tmp_path / "a.npz", x=bits.view("V2"))
    bits.tofile(tmp_path / "x.bf16")
    Y.tofile(tmp_path / "y.f32")
    (tmp_path / "shapes.json").write_text('{"x": [2, 3], "y.f32": {"shape": [2, 3, 2]}}')
    assert (open_dump(tmp_path).tensors["y"].values.array == Y).all()
    for path in (tmp_path / "a.npz", tmp_path):
        values = open_dump(path).tensors["x"].values
        np.testing.assert_allclose(values.array, X, rtol=2**-8)
        assert values.precision.name == "bf16"


CALLBACK = """main: something
ggml_debug:       Qcur-0 = (f32)    MUL_MAT(blk.0.attn_q.weight{8, 8, 1, 1}, attn_norm-0{8, 2, 1, 1}}) = {8, 2, 1, 1}
            [
             [
              [  0.0000, 0.1000, 0.2000, ...,       0.5000,       0.6000,       0.7000],
              [      1.0000,       1.1000,       1.2000, ...,       1.5000,       1.6000,       1.7000],
             ],
            ]
                                     sum = 8.0
common_debug_cb_eval:         Qcur-0 = (f32)       ROPE(Qcur-0{4, 2, 2, 1}, inp_pos{2, 1, 1, 1}}) = {4, 2, 2, 1}
            [
             [
              [      0.0000,       0.1000,       0.2000,       0.3000],
              [      0.4000,       0.5000,       0.6000,       0.7000],
             ],
             [
              [      1.0000,       1.1000,       1.2000,       1.3000],
              [      1.4000,       1.5000,       1.6000,       1.7000],
             ],
            ]
                                     sum = 13.6
"""


def test_the_log_of_llama_cpp_gives_what_it_shows(tmp_path: Path) -> None:
    dump = dump_of(CALLBACK, tmp_path)
    assert list(dump.tensors) == ["Qcur-0", "Qcur-0 (rope)"]
    values = dump.tensors["Qcur-0"].values
    assert values.known is not None
    assert values.known.reshape(2, 8)[0].tolist() == [True] * 3 + [False] * 2 + [True] * 3
    assert values.array.reshape(2, 8)[1, 7] == 1.7
    assert values.precision.absolute == pytest.approx(5e-5)
    assert dump.tensors["Qcur-0 (rope)"].values.array[0, 1, 0, 2] == 1.2


def test_a_pickled_file_is_not_read_but_said_how_to_convert(tmp_path: Path) -> None:
    for name in ("dump.pt", "pytorch_model.bin"):
        (tmp_path / name).write_bytes(b"\x80\x04." if name == "dump.pt" else b"PK\x03\x04" + b"\0" * 60)
        said = refuses(r"import torch; .*save_file\(", lambda name=name: open_dump(tmp_path / name))
        assert f"{name.partition('.')[0]}.safetensors" in said


BROKEN = {
    "a.npz": (b"PK\x03\x04 not a zip",),
    "a.safetensors": (b"\xff" * 40,),
    "a.json": (b"{]", b'{"module_path": "Net", "children": [3, {"outputs": {"shape": "x", "value": 7}}]}'),
    "a.txt": (b"no numbers here\n", b"\0\1\2\3", b""),
    "a.npy": (b"\x93NUMPY\x01\x00", b""),
}


def test_a_broken_file_is_one_line_that_names_it_and_objects_are_left_alone(tmp_path: Path) -> None:
    for name, data in ((name, data) for name, many in BROKEN.items() for data in many):
        (tmp_path / name).write_bytes(data)
        refuses(name, lambda name=name: open_dump(tmp_path / name))
    # objects in an NPZ file
    path = tmp_path / "a.npz"
    data = io.BytesIO()
    np.save(data, np.array([{}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("evil.npy", data.getvalue())
    refuses("nothing is unpickled", lambda: open_dump(path).tensors["evil"].values)


def test_what_an_npz_file_holds_and_nobody_can_read_is_named_but_a_text_is_left_alone(tmp_path: Path) -> None:
    path, data = tmp_path / "a.npz", io.BytesIO()
    np.save(data, X)
    np.savez(path, x=X, note=np.array("mine"), turned=X + 0j, shares=np.array([X, None], dtype=object))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("cut.npy", data.getvalue()[:-8])
    dump = open_dump(path)
    assert {name for name, each in dump.tensors.items() if each.numbers} == {"x"}
    assert dump.refused.keys() == {"turned", "shares", "cut"}
    assert dump.refused["turned"] == "holds complex64, not numbers: nothing is unpickled"
    assert "another size" in dump.refused["cut"]
    np.savez(path, turned=X + 0j)
    refuses("turned: holds complex64", lambda: open_dump(path))


def test_a_raw_file_of_another_size_and_corners_alone_are_refused(tmp_path: Path) -> None:
    X.tofile(tmp_path / "x.f32")
    (tmp_path / "shapes.json").write_text('{"x": [2, 4]}')
    refuses("2 × 4", lambda: open_dump(tmp_path))
    # corners alone, with what to ask for
    output = {"shape": "torch.Size([2, 9])", "value": ["tensor([[1.0, 2.0, ..., 3.0]])"]}
    path = tmp_path / "tree.json"
    path.write_text(json.dumps({"module_path": "Net", "children": [{"module_path": "x", "outputs": output}]}))
    refuses("use_repr=False", lambda: open_dump(path))


def test_a_debugger_reads_no_file_outside_its_folder(tmp_path: Path) -> None:
    save_file({"data": X}, tmp_path / "secret.safetensors")
    (tmp_path / "in").mkdir()
    output = {"shape": "torch.Size([2, 3])", "value": "../secret.safetensors"}
    path = tmp_path / "in" / "tree.json"
    path.write_text(json.dumps({"module_path": "Net", "children": [{"module_path": "x", "outputs": output}]}))
    refuses("corners", lambda: open_dump(path))
