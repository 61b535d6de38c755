"""Broken files of other programs: GGUF, word vectors, adapters, each read or refused in a line that names the file."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer.gguf_file import NUMBERS, read_gguf
from tui_transformer.model import Model
from tui_transformer.model.word_vectors import read_vectors
from tui_transformer.text.vocabulary import parse_vocabulary


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def value(kind: int, content: bytes, name: str = "name") -> bytes:
    return text(name) + struct.pack("<I", kind) + content


HEADER = b"".join(
    (
        value(8, text("llama"), "general.architecture"),
        value(4, struct.pack("<I", 32), "general.alignment"),
        value(9, struct.pack("<IQ", 8, 2) + text("one") + text("two"), "texts"),
        value(9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 4, 1) + struct.pack("<I", 7), "lists"),
        value(6, struct.pack("<f", 1e-5), "number"),
    )
)
GGUF = b"GGUF" + struct.pack("<IQQ", 3, 1, 5) + HEADER
GGUF += text("tensor") + struct.pack("<IQQIQ", 2, 4, 2, 0, 0)
GGUF += bytes(-len(GGUF) % 32) + np.arange(8, dtype="<f4").tobytes()

NUMBER = st.sampled_from([0, 1, 2, 8, 9, 12, 13, 1 << 31, (1 << 32) - 1])
"""A number of four bytes in place of a length, a type or a count."""


@st.composite
def with_another_number(draw: st.DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(4, len(data) - 4))
    return data[:at] + struct.pack("<I", draw(NUMBER)) + data[at + 4 :]


@COUNTS
def test_broken_headers_of_gguf_files(tmp_path, count):
    path = tmp_path / "model.gguf"
    path.write_bytes(GGUF)
    assert read_gguf(path).tensors["tensor"].shape == (2, 4)
    assert set(NUMBERS) >= {4, 6}

    def check(data: bytes) -> None:
        path.unlink()
        path.write_bytes(data)
        file = read_or_refused(lambda: read_gguf(path), path)
        if file is not None:
            assert file.size == len(data)
            read_or_refused(lambda: Model.load(path, device="cpu"), path)

    hold(count, check, data=st.one_of(damaged(GGUF), with_another_number(GGUF)))


def test_a_header_of_a_gguf_file_takes_bounded_memory(tmp_path):
    path = tmp_path / "model.gguf"
    size = 1 << 40
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + value(9, struct.pack("<IQ", 0, size - 100)))
        file.truncate(size)
    assert read_or_refused(lambda: read_gguf(path), path) is None


WORDS = parse_vocabulary("[PAD] [UNK] the wave shore", "words")
ROWS = b"the 0.5 -1 2e3\nwave 1 2 3\nnew york 0 0 0\n"
PACKED = b"2 3\n" + b"".join(word + b" " + np.float32([1, 2, 3]).tobytes() + b"\n" for word in (b"the", b"wave"))


@COUNTS
@pytest.mark.parametrize("whole", [ROWS, b"3 3\n" + ROWS, PACKED], ids=["GloVe", "text", "binary"])
def test_broken_word_vectors(tmp_path, whole, count):
    path = tmp_path / "vectors.txt"
    path.write_bytes(whole)
    assert read_vectors(path, WORDS).there.sum() == 2

    def check(data: bytes) -> None:
        path.write_bytes(data)
        vectors = read_or_refused(lambda: read_vectors(path, WORDS), path)
        if vectors is not None:
            assert np.isfinite(vectors.rows).all()
            vectors.said(WORDS)

    hold(count, check, data=damaged(whole))


ADAPTER = {"base_model_name_or_path": "someone/model", "peft_type": "LORA", "r": 8, "target_modules": ["q", "v"]}


@COUNTS
def test_broken_adapters_are_refused(tmp_path, count):
    path = tmp_path / "lora" / "adapter_config.json"
    path.parent.mkdir()

    def check(data: bytes) -> None:
        path.write_bytes(data)
        assert read_or_refused(lambda: Model.load(path.parent, device="cpu"), path, path.parent) is None

    hold(count, check, data=st.one_of(changed(ADAPTER).map(as_json), damaged(as_json(ADAPTER))))
