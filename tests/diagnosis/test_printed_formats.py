"""How programs write matrices: parts of columns, factors, commas, pages, types; and what is refused, not guessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dumping import IDS, dump_of, model_of, rows

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.diagnosis.dumps import Dump
from tui_transformer.errors import InputError

WIDE = [[1.5, 2.25, 5.0], [-3.0, 4.0, 6.0]]
PARTS = {
    "libtorch": "Q:\nColumns 1 to 2 1.500  2.250\n-3.000  4.000\n\nColumns 3 to 3 5.0\n 6.0\n[ CPUFloatType{2,3} ]\n",
    "MATLAB": "Q =\n\n  Columns 1 through 2\n\n   1.5   2.25\n  -3.0   4.00\n\n  Column 3\n\n   5.0\n   6.0\n\n",
    "Octave": "Q =\n\n Columns 1 and 2:\n\n   1.5   2.25\n  -3.0   4.00\n\n Column 3:\n\n   5.0\n   6.0\n\n",
    "R": "Q\n     [,1]  [,2]\n[1,]  1.5  2.25\n[2,] -3.0  4.00\n     [,3]\n[1,]  5.0\n[2,]  6.0\n",
    "with a factor": "Q =\n\n  1.0e-03 *\n\n  Columns 1 through 2\n\n   1500.0   2250.0\n  -3000.0   4000.0\n\n"
    "  Column 3\n\n   5000.0\n   6000.0\n\n",
    "a factor below": "Q =\n\n Columns 1 and 2:\n\n  0.1 *\n\n   15   22.5\n  -30   40\n\n"
    " Column 3:\n\n  0.1 *\n\n   50\n   60\n\n",
    "a factor each": "Q:\nColumns 1 to 2 0.1 *\n 15.0 22.5\n-30.0 40.0\n\nColumns 3 to 3 0.1 *\n 50.0\n 60.0\n",
}


def only(dump: Dump) -> np.ndarray:
    (tensor,) = dump.tensors.values()
    assert tensor.heading is not None
    assert tensor.heading.text == "Q"
    assert dump.refused == {}
    return tensor.values.array


def test_columns_that_are_printed_in_parts_are_one_matrix(tmp_path: Path) -> None:
    for program, text in PARTS.items():
        dump = dump_of(text + "K:\n1.5 2.5\n", tmp_path)
        assert list(dump.tensors) == ["Q", "K"], program
        np.testing.assert_allclose(dump.tensors["Q"].values.array, WIDE, rtol=1e-12, err_msg=program)
    # an array of matrices in parts of their columns
    page = "Columns 1 to 2 1.5 2.25\n-3 4.0\n\nColumns 3 to 3 5\n6\n\n"
    array = only(dump_of(f"Q:\n(1,.,.) = \n{page}(2,.,.) = \n0.5 *\n{page}[ CPUFloatType{{2,2,3}} ]\n", tmp_path))
    np.testing.assert_array_equal(array, [WIDE, np.multiply(WIDE, 0.5)])


def test_parts_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    for after in ("Columns 4 to 4\n5\n6\n", "Columns 3 to 3\n5\n6\n7\n"):
        dump = dump_of(f"K:\n1.5\nQ:\nColumns 1 to 2\n1.5 2.25\n-3 4.0\n\n{after}", tmp_path)
        assert dump.refused == {"Q": "the parts of its columns do not fit together"}
    # pages under large factors that differ
    dump = dump_of("K:\n1.5\nQ:\n(1,.,.) = \n1e5 *\n1.5 2\n\n(2,.,.) = \n1.5 2\n", tmp_path)
    assert "multiplied by numbers that differ" in dump.refused["Q"]


@pytest.mark.parametrize("factor", ["1e-3 *\n", "1.0e-03 *\n\n", "  0.001  *  \n", " .001 *\n"])
@pytest.mark.parametrize("heading", ["Q:\n", "Q =\n\n", "Q: "])
def test_a_factor_multiplies_what_follows(heading: str, factor: str, tmp_path: Path) -> None:
    dump = dump_of(f"{heading}{factor}1500.0 2250.0\n-3000.0 4000.0\n\nK:\n1.5 2.5\n", tmp_path)
    np.testing.assert_allclose(dump.tensors["Q"].values.array, [[1.5, 2.25], [-3, 4]], rtol=1e-12)
    np.testing.assert_array_equal(dump.tensors["K"].values.array, [[1.5, 2.5]])
    assert dump.tensors["Q"].values.precision.absolute == pytest.approx(0.05 * 1e-3)
    assert dump.tensors["K"].values.precision.absolute == pytest.approx(0.05)


def test_commas_are_points_where_every_number_has_one_and_else_stay_commas(tmp_path: Path) -> None:
    for between in (" ", "\t", "; ", "  "):
        text = "\n".join(between.join(row) for row in (("1,5", "2,25"), ("-3,0", "4,0"))) + "\n"
        np.testing.assert_array_equal(only(dump_of(f"Q:\n{text}", tmp_path)), [[1.5, 2.25], [-3, 4]])
    for text in ("1,5,2,25\n-3,0,4,0\n", "1, 5, 2, 25\n-3, 0, 4, 0\n", "[1,5,2,25]\n[-3,0,4,0]\n"):
        np.testing.assert_array_equal(only(dump_of(f"Q:\n{text}", tmp_path)), [[1, 5, 2, 25], [-3, 0, 4, 0]])
    for text in ("1,5 2\n3,0 4,0\n", "1,5 2,25\n3 4\n", "1,5 2,25\n3.0 4,0\n", "1 2\n1,5 2,25\n"):  # may be either
        with pytest.raises(
            InputError, match=r"run\.log: Q: commas and spaces between its numbers: write decimal points$"
        ):
            dump_of(f"Q:\n{text}", tmp_path)


READ = [
    "Q:\n1.5 2.25\n-3 4\n",
    "Q =\n[[1.5, 2.25],\n [-3.0, 4.0]]\n",
    "Q\n| 1.5 | 2.25 |\n| -3 | 4 |\n",
    "Q:\nrow 0: 1.5 2.25\nrow 1: -3 4\n",
    "Q:\n1.5;2.25\n-3;4\n",
    "Q\n2 2\n1.5 2.25\n-3 4\n",
    "Q:\nToken 0: [1.5, 2.25]\nToken 1: [-3.0, 4.0]\n",
    "Q:\nToken 0 (the): 1.5 2.25\nToken 1 (cat): -3.0 4.0\n",
    "Queries:\nthe   1.5 2.25\ncat   -3.0 4.0\n",
    "Queries:\n        d0   d1\nthe   | 1.5  2.25 |\ncat   | -3.0 4.0 |\n",
    "Q[0] = 1.5 2.25\nQ[1] = -3 4.0\n",
    "Q[0][0] = 1.5\nQ[0][1] = 2.25\nQ[1][0] = -3.0\nQ[1][1] = 4.0\n",
    "Q: tensor([[ 1.5000,  2.2500],\n        [-3.0000,  4.0000]], grad_fn=<MmBackward0>)\n",
    "Q = array([[ 1.5 ,  2.25],\n       [-3.  ,  4.  ]], dtype=float32)\n",
    "Q: [[1.5, 2.25], [-3.0, 4.0]]\n",
    "Q:\n-----\n[\n  [1.5,\n   2.25],\n  [-3.0, 4.0]\n]\n",
    "Q: {{1.5, 2.25}, {-3.0, 4.0}}\n",
    "Q\t(2x2)\n\t1.5\t2.25\n\t-3.0\t4.0\n",
    "\x1b[1;32mQ:\x1b[0m\n\x1b[33m1.5 2.25\x1b[0m\n-3 4.0\n",
    "2024-05-01 12:00:00,123 INFO: Q:\n[INFO] 1.5 2.25\n[INFO] -3 4.0\n",
    "Q shape: (2, 2)\n1.5e+00 2.25e0\n-3E0 4.0e+00\n",
    "Q,1.5,2.25\nQ,-3,4.0\n",
    "Q:\r\n1.5 2.25\r\n-3 4.0\r\n",
    "Q =\n 1.5  2.25\n-3.0  4.00\n[ CPUFloatType{2,2} ]\n",
    "Q = [1.5 2.25; -3 4]\n",  # MATLAB
    "Q:\n[1.5, 2.25;\n -3, 4]\n",  # Eigen
    "Q:\n[[1.5, 2.25];\n [-3, 4]]\n",  # Eigen, brackets
    "Q:\n1.500000 2.250000\n-3.000000 4.000000\n",  # std::fixed
    "Q:\n\n  ┌          ┐\n  │ 1.5 2.25 │\n  │ -3  4    │\n  └          ┘\n\n",  # nalgebra
    "Q: [[1.5, 2.25],\n [-3.0, 4.0]], shape=[2, 2], strides=[2, 1], layout=Cc (0x5), const ndim=2\n",  # ndarray
    "[src/main.rs:4:5] &Q = [\n    [\n        1.5,\n        2.25,\n    ],\n    [-3.0, 4.0],\n]\n",  # Rust, dbg!
    "Q = [[1.5f32, 2.25_f32], [-3.0f32, 4.0f32]]\n",  # Rust, suffixes
    "Q = {{1.5f, 2.25f}, {-3.f, 4.0f}};\n",  # C++, suffixes
    "Q:\n2×2 Matrix{Float64}:\n  1.5  2.25\n -3.0  4.0\n",  # Julia
    "Q = 2×2 Matrix{Float64}:\n  1.5  2.25\n -3.0  4.0\n",  # Julia, one line
    "Q = Float32[1.5 2.25; -3.0 4.0]\n",  # Julia, literal
    '{"Q": [[1.5, 2.25], [-3.0, 4.0]]}\n',  # JSON
    '{"name": "Q", "layer": 0, "values": [[1.5, 2.25], [-3.0, 4.0]]}\n',  # JSON, a line
    "Q: [[np.float32(1.5), np.float32(2.25)], [np.float32(-3.0), np.float32(4.0)]]\n",  # list of NumPy 2
    "Q:\ntensor([[ 1.50,  2.25],\n        [-3.00,  4.00]], device='cuda:0', grad_fn=<AddmmBackward0>)\n",  # PyTorch
    "Q torch.Size([2, 2]) tensor([[1.5, 2.25], [-3., 4.]])\n",  # PyTorch, shape
    "Q: Parameter containing:\ntensor([[ 1.5,  2.25],\n        [-3., 4.]], requires_grad=True)\n",  # PyTorch, parameter
    "Q: <tf.Tensor: shape=(2, 2), dtype=half, numpy=\narray([[ 1.5,  2.25],\n [-3., 4.]], dtype=half)>\n",  # TensorFlow
]


@pytest.mark.parametrize("text", READ)
def test_matrices_are_read_however_they_are_printed(text: str, tmp_path: Path) -> None:
    dump = dump_of(text, tmp_path)
    (tensor,) = dump.tensors.values()
    assert tensor.heading is not None
    assert tensor.heading.text.strip('"') in ("Q", "Queries")
    np.testing.assert_array_equal(tensor.values.array, [[1.5, 2.25], [-3, 4]])
    assert dump.refused == {}


def test_pages_of_an_array_are_one(tmp_path: Path) -> None:
    for head, sizes in (("ans(:,:,{})", "\n"), ("Q(:,:,{})", "\n"), ("[:, :, {}]", "2×2×2 Array{Float32, 3}:")):
        text = "".join(f"{head.format(i)} =\n\n   1.5   {i}.25\n  -3.0   4.00\n\n" for i in (1, 2))
        array = only(dump_of(f"Q = {sizes}\n{text}", tmp_path))
        np.testing.assert_array_equal(array, [[[1.5, i + 0.25], [-3, 4]] for i in (1, 2)])
    array = only(dump_of('{"name": "Q", "values": [[[1.5, -inf]], [[nan, 4]]]}\n', tmp_path))
    np.testing.assert_array_equal(array, [[[1.5, -np.inf]], [[np.nan, 4]]])


ELIDED = {
    "NumPy": "[[1.5 2.5 ... 3.5]\n [1.5 2.5 ... 3.5]\n ...\n [1.5 2.5 ... 3.5]]\n",
    "NumPy, rows": "[[1.5 2.5]\n ...\n [3.5 4.5]]\n",
    "PyTorch": "tensor([[1.5, 2.5,  ..., 3.5],\n        ...,\n       [1.5, 2.5,  ..., 3.5]], grad_fn=<AddBackward0>)\n",
    "Julia": "20×20 Matrix{Float64}:\n  1.5  2.25  …  2.0\n  ⋮          ⋱  ⋮\n -3.0  4.0   …  1.0\n",
    "ndarray": "[[1.5, 2.5, ..., 3.5],\n ...,\n [1.5, 2.5, ..., 3.5]], shape=[9, 9], strides=[9, 1], layout=Cc (0x5)\n",
}


def test_a_matrix_that_shows_its_corners_is_refused(tmp_path: Path) -> None:
    for text in ELIDED.values():
        with pytest.raises(InputError, match=r"run\.log: Q: shows only its corners: print it whole$"):
            dump_of(f"Q:\n{text}", tmp_path)
    # numbers that end in words
    (reason,) = dump_of("Q:\n1.5 2.25 ... (14 more)\nV:\n1.5 2.25\n", tmp_path).refused
    assert reason == "the line '1.5 2.25 (14 more)'"


@pytest.mark.parametrize(
    "text",
    [
        "Layer 0\nSentence {0}:\nQ:\n{1}Sentence {2}:\nQ:\n{3}Layer 1\nSentence {0}:\nK:\n{1}Sentence {2}:\nK:\n{3}",
        "Layer 0\nQ:\n  Batch {0}\n{1}  Batch {2}\n{3}Layer 1\nK:\n  Batch {0}\n{1}  Batch {2}\n{3}",
        "Layer 0\nQ (batch {0}):\n{1}Q (batch {2}):\n{3}Layer 1, batch {0}:\nK\n{1}Layer 1, batch {2}:\nK\n{3}",
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_elements_of_a_batch_within_layers_are_sentences(text: str, first: int, tmp_path: Path) -> None:
    arrays = np.array([[1.5, 2.25], [-3, 4]]), np.array([[0.5, 2.25], [-3, 4]])
    dump = dump_of(text.format(first, rows(arrays[0]), first + 1, rows(arrays[1])), tmp_path)
    for sentence, array in zip((dump, *dump.further), arrays, strict=True):
        assert list(sentence.tensors) == ["layer 0 Q", "layer 1 K"]
        for tensor in sentence.tensors.values():
            np.testing.assert_array_equal(tensor.values.array, array)


def test_a_sentence_below_a_section_is_no_matrix_of_it(tmp_path: Path) -> None:
    text = "Layer 0\nSelf-Attention:\nSentence 1:\nOutput:\n1.5 2.5\nSentence 2:\nOutput:\n1.5 2.5\n"
    dump = dump_of(text, tmp_path)
    assert [list(each.tensors) for each in (dump, *dump.further)] == [["layer 0 self attention Output"]] * 2


def test_values_under_a_factor_are_compared_as_exactly_as_they_are_printed(tmp_path: Path) -> None:
    """0.0015 printed as 1.5 × 10⁻³ with a decimal is within 0.05 × 10⁻³, and not within 0.05."""
    logits = np.array([[0.5, 0.0015]])
    for wrong in (0.0, 0.0002):
        values = dump_of(f"logits:\n0.001 *\n{rows((logits + wrong) * 1000)}", tmp_path).tensors["logits"].values
        off = np.abs(values.array - logits)
        assert bool((off <= values.precision.of(values.array)).all()) == (wrong == 0)
    with pytest.raises(InputError):
        diagnose(dump_of("foo:\n0.001 *\n1.5\n", tmp_path), model_of("post"), Input(np.array([IDS])))
