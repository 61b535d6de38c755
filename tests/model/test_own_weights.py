"""Weights as a program of one's own writes them (NPZ, raw numbers, CSV), and word vectors as the embedding."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from reference import in_float64
from refusing import refuses
from saved import refusal

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.word_vectors import read_vectors
from tui_transformer.text.dispatch import load_vocabulary

CONFIG = {"model_type": "vanilla", "architecture": "encoder", "vocab_size": 5, "d_model": 4, "heads": 2, "d_ff": 6}
MODEL = Model.load("encoder", d_model=4, heads=2, d_ff=6, vocabulary="waves", dtype="float32", device="cpu")
SHAPES = {name: tuple(axis.size for axis in axes) for name, axes in MODEL.program(1).weights.items()}
TABLE = "embedding.tokens.weight"
WAVES = load_vocabulary("waves")
SHAPES |= {TABLE: (5, 4), "output.logits.weight": (4, 5)}
NORM = "encoder.0.self_attention.norm.bias"


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def write_raw(folder: Path, arrays: dict[str, np.ndarray], ending: str = ".f32", dtype: str = "<f4") -> None:
    for name, array in arrays.items():
        array.astype(dtype).tofile(folder / f"{name}{ending}")
    (folder / "shapes.json").write_text(json.dumps({name: array.shape for name, array in arrays.items()}))


def write_csv(folder: Path, arrays: dict[str, np.ndarray], delimiter: str = ",", end: str = "\n") -> None:
    for name, array in arrays.items():
        rows = np.atleast_2d(array)
        text = "".join(delimiter.join(map(str, row)) + end for row in rows.tolist())
        (folder / f"{name}.csv").write_text(text)


def the_same(folder: Path, arrays: dict[str, np.ndarray], atol: float = 0.0) -> None:
    model = in_float64(folder)
    trace = model.trace(ids=[1, 2, 3])
    for name, array in arrays.items():
        np.testing.assert_allclose(trace[name], array, rtol=0, atol=atol)
    np.testing.assert_allclose(trace["embedding.tokens"], arrays[TABLE][[1, 2, 3]], rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("ending", "dtype", "atol"),
    [(".f32", "<f4", 0), (".bin", "<f4", 0), (".raw", "<f4", 0), (".f64", "<f8", 0), (".f16", "<f2", 2e-3)],
)
def test_raw_numbers_are_read_by_the_ending_of_their_file(folder, arrays, ending, dtype, atol) -> None:
    write_raw(folder, arrays, ending, dtype)
    the_same(folder, arrays, atol)


def test_bfloat16_numbers_are_the_upper_halves_of_float32(folder, arrays) -> None:
    write_raw(folder, arrays)
    (folder / f"{TABLE}.f32").unlink()
    (arrays[TABLE].view(np.uint32) >> 16).astype("<u2").tofile(folder / f"{TABLE}.bf16")
    the_same(folder, arrays, 1e-1)


def test_an_npz_file_of_any_name_is_read_however_its_arrays_lie(folder, arrays) -> None:
    for order in ("C", "F"):
        np.savez(folder / "of_mine.npz", **{name: np.asarray(array, order=order) for name, array in arrays.items()})
        the_same(folder, arrays)


def test_columns_of_a_turned_array_are_read_in_windows_too(folder, arrays) -> None:
    np.savez(folder / "a.npz", **{name: np.asfortranarray(array, np.float64) for name, array in arrays.items()})
    model = in_float64(folder)
    np.testing.assert_array_equal(model.weights.file.part(TABLE, np.array([1, 4])), arrays[TABLE][[1, 4]])
    np.testing.assert_array_equal(model.weights.file.part(TABLE, (slice(1, 3), slice(2, 4))), arrays[TABLE][1:3, 2:4])


@pytest.mark.parametrize(
    ("delimiter", "end"), [(",", "\n"), (", ", ",\n"), (";", "\r\n"), (" ", " \n\n"), ("\t", "\n# a remark\n")]
)
def test_tables_are_read_as_programs_write_them(folder, arrays, delimiter, end) -> None:
    write_csv(folder, arrays, delimiter, end)
    the_same(folder, arrays)


def test_a_vector_may_be_a_line_or_a_column_and_numbers_that_are_none_are_refused(folder, arrays) -> None:
    write_csv(folder, arrays)
    norm = "encoder.0.self_attention.norm.weight"
    (folder / f"{norm}.csv").write_text("".join(f"{value}\n" for value in arrays[norm].tolist()))
    the_same(folder, arrays)
    write_csv(folder, arrays)
    (folder / f"{NORM}.csv").write_text("1,nan,2,3\n")
    assert "holds NaN or infinity" in refusal(folder)


def test_words_beside_the_weights_are_read(folder, arrays) -> None:
    write_raw(folder, arrays)
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\nthe\ncat\nsat\n")
    assert Model.load(folder, device="cpu").encode("the cat").ids == (2, 3)


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content) and None


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without(f"{TABLE}.f32"), f"tensor {TABLE} is missing"),
        (text(f"{TABLE}.f32", "abc"), "3 bytes are not 5 × 4 numbers of 4 bytes"),
        (text(f"{TABLE}.f32", "abcd" * 19), "76 bytes are not 5 × 4 numbers"),
        (text("shapes.json", "[]"), "not a JSON object"),
        (text("shapes.json", '{"a": 3}'), "'a' has to be a list of sizes such as"),
        (text("shapes.json", '{"a": [-1]}'), "has to be a list of sizes"),
        (text("shapes.json", "{}"), "but config.json says 5 × 4"),
        (text(f"{NORM}.f32", "\x00\x00\x00\x7f" * 4), None),
    ],
)
def test_raw_files_that_are_not_right_are_named(folder, arrays, spoil, says) -> None:
    write_raw(folder, arrays)
    spoil(folder)
    if says is None:
        Model.load(folder, device="cpu").trace(ids=[1])["output.logits"]  # a large number is none that is damaged
        return
    assert says in refusal(folder)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no numbers in it"),
        ("# nothing\n", "no numbers in it"),
        ("1,2\n3\n", "not a table of numbers"),
        ("1,two,3,4\n", "not a table of numbers: could not convert string 'two'"),
        ("1,2,3\n", "is 3, but config.json says 5 × 4"),
        ("\x00\ufffd\n", "not a table of numbers"),
    ],
)
def test_tables_that_are_not_right_are_named(folder, arrays, content, says) -> None:
    write_csv(folder, arrays)
    (folder / f"{TABLE}.csv").write_text(content)
    assert says in refusal(folder)


def test_npz_files_that_are_not_read_are_refused_with_the_way_out(folder, arrays) -> None:
    np.savez_compressed(folder / "a.npz", **arrays)
    assert "is compressed: write it with np.savez instead" in refusal(folder)
    np.savez(folder / "a.npz", **{**arrays, TABLE: np.ones((5, 4), np.int64)})
    assert "stored as int64: only F64, F32, F16, BF16 can be read" in refusal(folder)
    np.savez(folder / "a.npz", **{**arrays, TABLE: np.array([{}], object)})
    assert "stored as object" in refusal(folder)
    np.savez(folder / "b.npz", **arrays)
    assert "2 NPZ files, such as a.npz" in refusal(folder)


def test_broken_npz_files_are_refused_in_one_line(folder, arrays) -> None:
    np.savez(folder / "a.npz", **arrays)
    whole = (folder / "a.npz").read_bytes()
    rng, refused = np.random.default_rng(1), 0
    for at in rng.integers(0, len(whole), 60).tolist():
        broken = bytearray(whole)
        broken[at : at + 4] = b"\xff{\x00\xff"
        (folder / "a.npz").write_bytes(bytes(broken) if at % 2 else whole[:at])
        try:
            Model.load(folder, device="cpu").trace(ids=[1])["output.logits"]
        except InputError as error:
            refused += "\n" not in str(error)
    assert refused > 30


def test_pickled_weights_beside_a_table_are_still_named(folder) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"x" * 8)
    (folder / "results.csv").write_text("1,2\n")
    assert "pickled weights" in refusal(folder)


# Word vectors of GloVe and word2vec


ROWS = {
    "the": (0.1, 0.2, 0.3, 0.4),
    "waves": (1.0, 0.0, 0.0, 0.5),
    "Shore": (0.9, 0.1, 0.0, 0.5),
    "zebra": (3.0, 3.0, 3.0, 3.0),
    "The": (9.0, 9.0, 9.0, 9.0),
}


def as_text(rows: dict[str, tuple[float, ...]]) -> bytes:
    return "".join(f"{word} {' '.join(map(str, values))}\n" for word, values in rows.items()).encode()


def binary(end: bytes) -> bytes:
    return b"5 4\n" + b"".join(
        word.encode() + b" " + struct.pack("<4f", *values) + end for word, values in ROWS.items()
    )


FILES = {
    "glove": as_text(ROWS),
    "glove with a word of two": as_text({**ROWS, ". .": (1.0, 2.0, 3.0, 4.0)}),
    "word2vec": b"5 4\n" + as_text(ROWS),
    "word2vec binary": binary(b""),
    "word2vec binary with line breaks": binary(b"\n"),
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_the_words_of_the_vocabulary_get_their_rows(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    vectors = read_vectors(path, WAVES)
    assert vectors.rows.shape == (WAVES.size, 4)
    assert [WAVES.word(int(i)) for i in np.flatnonzero(vectors.there)] == ["the", "waves", "shore"]
    np.testing.assert_allclose(vectors.rows[WAVES.ids["the"]], ROWS["the"])
    np.testing.assert_allclose(vectors.rows[WAVES.ids["shore"]], ROWS["Shore"])
    said = vectors.said(WAVES)
    assert said == "vectors: vectors of 4 numbers for 3 of 8 words; none for [UNK], crashed, forcefully, against, !"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "has -1 numbers"),
        (b"the\n", "has 0 numbers"),
        (b"the 1 2\nwaves 1\n", "line 2 has not a word and 2 numbers"),
        (b"5 2\nthe 1 2\nwaves 1\n", "line 3 has not a word and 2 numbers"),
        (b"the 1 2\nwaves 1 x\n", "line 2 has a value that is no number"),
        (b"the 1 nan\n", "the vector of 'the' is not finite"),
        (b"zebra 1 2\n", "none of the words of waves"),
        (binary(b"")[:40], "ends after 1 of 5 vectors"),
        (b"5 99999\nthe 1\n", "of 1 to 65,536"),
        (b"\0\1\2\3", "no word vectors"),
    ],
)
def test_a_broken_file_is_refused_in_a_line(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    assert says in refuses("", lambda: read_vectors(path, WAVES))


def test_a_model_has_the_width_of_its_vectors_and_random_rows_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(FILES["glove"])
    model, plain = Model.load("encoder", vectors=path), Model.load("encoder", d_model=4, heads=4)
    table, random = (each.trace("the waves")[TABLE] for each in (model, plain))
    assert (model.config.d_model, model.config.heads) == (4, 4)
    np.testing.assert_allclose(table[2], ROWS["waves"])
    np.testing.assert_array_equal(table[3], random[3])
    deeper = model.changed(layers=2)
    np.testing.assert_array_equal(deeper.trace("the waves")[TABLE], table)
    path.write_bytes(FILES["glove"])
    with pytest.raises(UsageError, match=r"d_model 8: the vectors of .* have 4 numbers"):
        Model.load("encoder", vectors=path, d_model=8)


def test_a_checkpoint_has_its_own_embedding_and_others_begin_as_they_are_asked_to() -> None:
    zeros, uniform, normal = (
        Model.load("encoder", embedding=start, d_model=64).trace("the")[TABLE] for start in ("zeros", "uniform", None)
    )
    assert not zeros.any()
    assert 0.9 * math.sqrt(2 / 64) < abs(uniform).max() <= math.sqrt(2 / 64)
    np.testing.assert_array_equal(normal, Model.load("encoder", embedding="normal", d_model=64).trace("the")[TABLE])
    refuses("embedding 'ones'", lambda: Model.load("encoder", embedding="ones"), UsageError)
    for given in ({"embedding": "zeros"}, {"vectors": "x"}):
        refuses(next(iter(given)), lambda given=given: Model.load("story", **given), UsageError)
