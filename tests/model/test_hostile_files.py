"""Broken checkpoints and files of other programs: each read, or refused in one line that names the file."""

from __future__ import annotations

import json
import math
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import (
    COUNTS,
    COUNTS_OF_EVERY_FAMILY,
    as_json,
    broken_json,
    broken_tensors,
    changed,
    damaged,
    hold,
    hold_file,
    read_or_refused,
)
from hypothesis import strategies as st
from reference import REFERENCES
from refusing import refuses
from safetensors.numpy import load_file, save, save_file

from tui_transformer import gguf_file
from tui_transformer.generation.rules import defaults_of
from tui_transformer.gguf_file import NUMBERS, read_gguf
from tui_transformer.model import Model
from tui_transformer.model.gguf.tensors import check_places
from tui_transformer.model.tensors import STORED, Tensors, open_file, open_index
from tui_transformer.model.word_vectors import read_vectors
from tui_transformer.text.vocabulary import parse_vocabulary

FAMILIES = sorted(path.parent.name for path in REFERENCES.glob("*/config.json"))
SMALL = {"first": np.arange(6, dtype="f4").reshape(2, 3), "second": np.ones(4, "f2"), "third": np.zeros((), "f8")}
TEXTS_OF_A_LIST = struct.pack("<IQ", 8, 600) + bytes(8 * 600)
WORDS = parse_vocabulary("[PAD] [UNK] the wave shore", "words")
ROWS = b"the 0.5 -1 2e3\nwave 1 2 3\nnew york 0 0 0\n"
PACKED = b"2 3\n" + b"".join(word + b" " + np.float32([1, 2, 3]).tobytes() + b"\n" for word in (b"the", b"wave"))
ADAPTER = {"base_model_name_or_path": "someone/model", "peft_type": "LORA", "r": 8, "target_modules": ["q", "v"]}


def read_all(tensors: Tensors) -> dict[str, np.ndarray]:
    """Every tensor of a type that is read."""
    kinds = {name: tensor.kind for name, tensor in tensors.by_name.items()}
    return {name: tensors.read(name, np.asarray) for name, kind in kinds.items() if kind in STORED}


@COUNTS
def test_broken_weights(tmp_path, count):
    path, raw = tmp_path / "model.safetensors", save(SMALL)
    path.write_bytes(raw)
    assert read_all(open_file(path)).keys() == load_file(path).keys()

    def read() -> None:
        for name, array in read_all(open_file(path)).items():
            assert array.nbytes <= 2 * path.stat().st_size, name

    hold_file(count, path, broken_tensors(raw), read)


@COUNTS
def test_a_broken_index(tmp_path, count):
    path = tmp_path / "model.safetensors.index.json"
    for name in SMALL:
        save_file({name: SMALL[name]}, tmp_path / f"{name}.safetensors")
    index = {"metadata": {"total_size": 40}, "weight_map": {name: f"{name}.safetensors" for name in SMALL}}

    def read() -> None:
        for name, array in read_all(open_index(path)).items():
            assert np.array_equal(array, SMALL[name])

    hold_file(count, path, broken_json(index), read, tmp_path)  # or a file beside it is missing


@COUNTS_OF_EVERY_FAMILY
@pytest.mark.parametrize("family", FAMILIES)
def test_broken_configurations(tmp_path, family, count):
    """A changed file that is still read computes, with weights of the sizes that it says or not at all."""
    folder = tmp_path / "model"
    shutil.copytree(REFERENCES / family, folder)
    (folder / "expected.npz").unlink(missing_ok=True)
    raw = json.loads((folder / "config.json").read_text())

    def check(document: Any) -> None:
        (folder / "config.json").write_bytes(as_json(document))
        read_or_refused(
            lambda: computed(folder), folder / "config.json", folder / "model.safetensors", Path("vocabulary")
        )

    hold(count, check, document=changed(raw))


def computed(folder: Path) -> None:
    """The probabilities of two tokens, which are some."""
    model = Model.load(folder, device="cpu")
    decoder = {"decoder_ids": [2]} if model.config.has_decoder else {}
    trace = model.trace(ids=[1, 2], **decoder)
    if "output.probabilities" in trace.program.names:
        np.testing.assert_allclose(np.nansum(trace["output.probabilities"], axis=-1), 1.0, atol=1e-3)


GENERATION = {"eos_token_id": [2, 3], "decoder_start_token_id": 2, "forced_eos_token_id": 2, "bad_words_ids": [[5]]}
GENERATION |= {"do_sample": True, "temperature": 0.7, "top_k": 50, "top_p": 0.9, "repetition_penalty": 1.2}
GENERATION |= {"num_beams": 4, "min_length": 3, "suppress_tokens": [1]}


@COUNTS
def test_broken_settings_of_generation(tmp_path, count):
    folder = tmp_path / "model"
    shutil.copytree(REFERENCES / "bart", folder)
    model = Model.load(folder, device="cpu")
    hold_file(count, folder / "generation_config.json", broken_json(GENERATION), lambda: defaults_of(model))


def test_a_header_that_says_too_much_is_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.write((1 << 40).to_bytes(8, "little"))
        file.truncate(1 << 41)
    assert read_or_refused(lambda: open_file(path), path) is None


@pytest.mark.slow
@pytest.mark.parametrize("unit", [b"[],", b'{"a":1},', b"1.5,", b'"ab",', b"-7,"])
def test_the_largest_header_takes_bounded_memory(tmp_path, unit):
    path = tmp_path / "model.safetensors"
    text = b'{"a":[' + unit * ((1 << 25) // len(unit) - 8) + b"1]}"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    assert read_or_refused(lambda: open_file(path), path) is None


OF_LLAMA_CPP = (
    *("llama", "gemma3", "olmo3", "phi3", "qwen2_moe", "gpt_oss"),
    *("falcon", "bloom", "stablelm", "bert", "gpt2"),
)


@COUNTS
@pytest.mark.parametrize("family", OF_LLAMA_CPP)
def test_broken_metadata_of_gguf_files(tmp_path, monkeypatch, family, count):
    """A changed file that is still read computes, or is refused."""
    pytest.importorskip("gguf")
    from gguf_files import write_gguf

    path = write_gguf(tmp_path / "model.gguf", family)
    whole = read_gguf(path)
    names = [name for name in whole.metadata if name.startswith(whole.architecture)]
    shapes = {name: list(entry.shape) for name, entry in whole.tensors.items()}
    document = {"metadata": {name: _plain(whole.metadata[name]) for name in names}, "shapes": shapes}

    def check(given: Any) -> None:
        given = given if isinstance(given, dict) else {}
        said, sizes = (given.get(key) if isinstance(given.get(key), dict) else {} for key in ("metadata", "shapes"))
        tensors = {name: replace(whole.tensors[name], shape=shape) for name, shape in _sizes(sizes, shapes)}
        broken = replace(whole, metadata={"general.architecture": whole.architecture, **said}, tensors=tensors)
        monkeypatch.setattr(gguf_file, "read_gguf", lambda _: broken)
        read_or_refused(lambda: computed(path), path)

    hold(count, check, given=changed(document))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _sizes(given: dict[str, Any], known: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """The shapes that a file can have: whole numbers from 0, and no more than it has bytes."""
    shapes = [(name, shape) for name, shape in given.items() if name in known and isinstance(shape, list)]
    return [
        (name, tuple(shape))
        for name, shape in shapes
        if all(type(each) is int and each >= 0 for each in shape) and math.prod(shape) < 1 << 22
    ]


# Files of other programs: GGUF, word vectors, adapters, manifests


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
    refuses(r"model\.gguf: .* its lists have 1,[0-9]+ texts and lists", lambda: read_gguf(path))


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
    refuses(rf"model\.gguf: .*{said}", lambda: check_places(file))


@pytest.mark.parametrize("shape", [(0, 1 << 63), (1 << 63, 0), (0, (1 << 64) - 1)])
def test_a_tensor_of_no_numbers_and_an_impossible_axis_is_refused(tmp_path, shape):
    path = tmp_path / "model.gguf"
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<IQQIQ", 2, *shape, 0, 0)
    path.write_bytes(data + bytes(64))
    assert read_or_refused(lambda: read_gguf(path), path) is None


@COUNTS
@pytest.mark.parametrize("whole", [ROWS, b"3 3\n" + ROWS, PACKED], ids=["GloVe", "text", "binary"])
def test_broken_word_vectors(tmp_path, whole, count):
    path = tmp_path / "vectors.txt"
    path.write_bytes(whole)
    assert read_vectors(path, WORDS).there.sum() == 2

    def read() -> None:
        vectors = read_vectors(path, WORDS)
        assert np.isfinite(vectors.rows).all()
        vectors.said(WORDS)

    hold_file(count, path, damaged(whole), read)


@COUNTS
def test_broken_adapters_are_refused(tmp_path, count):
    path = tmp_path / "lora" / "adapter_config.json"
    path.parent.mkdir()

    def check(data: bytes) -> None:
        path.write_bytes(data)
        assert read_or_refused(lambda: Model.load(path.parent, device="cpu"), path, path.parent) is None

    hold(count, check, data=broken_json(ADAPTER))
