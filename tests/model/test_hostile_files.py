"""Broken files of other programs (GGUF, word vectors, adapters, manifests) are read, or refused by name."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer import gguf_file
from tui_transformer.errors import InputError
from tui_transformer.gguf_file import NUMBERS, read_gguf
from tui_transformer.model import Model
from tui_transformer.model.gguf.tensors import check_places
from tui_transformer.model.local_models import MODEL_LAYER, stored_models
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


TEXTS_OF_A_LIST = struct.pack("<IQ", 8, 600) + bytes(8 * 600)


@pytest.mark.parametrize(
    "lists",
    [
        [struct.pack("<IQ", 8, 1001) + bytes(8 * 1001)],
        [struct.pack("<IQ", 9, 1001) + struct.pack("<IQ", 8, 0) * 1001],
        [struct.pack("<IQ", 9, 2) + 2 * TEXTS_OF_A_LIST],
        2 * [TEXTS_OF_A_LIST],
    ],
    ids=["texts", "lists", "texts in lists", "two lists"],
)
def test_very_many_empty_values_are_refused(tmp_path, monkeypatch, lists):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(lists)) + b"".join(value(9, each) for each in lists))
    assert read_gguf(path)
    path.write_bytes(path.read_bytes() + b" ")
    monkeypatch.setattr(gguf_file, "MOST_VALUES", 1000)
    with pytest.raises(InputError, match=r"model\.gguf: .* its lists have 1,[0-9]+ texts and lists"):
        read_gguf(path)


def shaped(path: Path, *tensors: tuple[str, int, int], begin: int = 0, more: int = 0, alignment: int = 32) -> Path:
    """A file of tensors of F32, each a name, so many numbers and the byte at which it begins."""
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 2)
    data += value(8, text("llama"), "general.architecture")
    data += value(4, struct.pack("<I", alignment), "general.alignment")
    for name, count, start in tensors:
        data += text(name) + struct.pack("<IQIQ", 1, count, 0, start + begin)
    data += bytes(-len(data) % alignment + begin)
    end = max(start + 4 * count for _, count, start in tensors)
    path.write_bytes(data + bytes(end + more))
    return path


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ((64, {}), None),
        ((96, {"alignment": 64}), None),
        ((64, {"more": 31}), None),
        ((60, {}), "first overlaps tensor second"),
        ((0, {}), "first overlaps tensor second"),
        ((96, {}), "first, 16, fills 64 of the 96 bytes"),
        ((64, {"more": 32}), "second, 16, fills 64 of the 96 bytes"),
        ((64, {"begin": 32}), "32 bytes between its header and its first tensor"),
    ],
)
def test_tensors_that_overlap_or_do_not_fill_their_place_are_refused_by_name(tmp_path, second, said):
    start, more = second
    path = shaped(tmp_path / "model.gguf", ("first", 16, 0), ("second", 16, start), **more)
    file = read_gguf(path)
    if said is None:
        assert check_places(file) is None
        return
    with pytest.raises(InputError, match=rf"model\.gguf: .*{said}"):
        check_places(file)


@pytest.mark.parametrize("shape", [(0, 1 << 63), (1 << 63, 0), (0, (1 << 64) - 1)])
def test_a_tensor_of_no_numbers_and_an_impossible_axis_is_refused(tmp_path, shape):
    path = tmp_path / "model.gguf"
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<IQQIQ", 2, *shape, 0, 0)
    path.write_bytes(data + bytes(64))
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


# What manifests do not name is not found, and nothing outside the store is

BLOB = "ab" * 32
MANIFEST = {
    "schemaVersion": 2,
    "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:" + "0" * 64},
    "layers": [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "1" * 64, "size": 7},
        {"mediaType": MODEL_LAYER, "digest": f"sha256:{BLOB}", "size": 9},
    ],
}


@COUNTS
def test_broken_manifests(tmp_path, monkeypatch, count):
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "none"))
    tags = tmp_path / "manifests" / "a.registry" / "library" / "tiny"
    blob = tmp_path / "blobs" / f"sha256-{BLOB}"
    for folder in (tags, blob.parent):
        folder.mkdir(parents=True)
    blob.touch()
    (tags / "whole").write_text(json.dumps(MANIFEST))

    def check(data: bytes) -> None:
        (tags / "broken").write_bytes(data)
        folders = {each.name: each.folder for each in stored_models()}
        assert folders["tiny:whole"] == blob
        assert set(folders) <= {"tiny:whole", "tiny:broken"}
        assert set(folders.values()) == {blob}

    hold(count, check, data=st.one_of(changed(MANIFEST).map(as_json), damaged(as_json(MANIFEST))))
