"""Checkpoint folders: written and read again, and every kind of damage told in one line."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import REFERENCES, reconfigured
from refusing import refuses
from safetensors.numpy import load_file, save_file
from saved import TENSOR, TEXT, refusal

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text.build import build_characters

MODERN = {"norm": "pre", "activation": "gelu", "positions": "learned", "bias": True, "tie_output": True, "layers": 2}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("encoder", {}), ("decoder", MODERN), ("encoder", {"vocabulary": "english", "d_model": 16}), ("attention", {})],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_saved_is_loaded_again(tmp_path, name, sizes, dtype):
    model = Model.load(name, device="cpu", dtype=dtype, **sizes)
    model.save(f"{tmp_path}/new/folder")  # a path may be a text
    again = Model.load(tmp_path / "new" / "folder", device="cpu", dtype=dtype)
    assert (again.config, again.name) == (model.config, "folder")
    traces = [each.trace(TEXT) if each.config.vocab_size else each.trace() for each in (model, again)]
    for step in traces[0]:
        assert np.array_equal(traces[0][step], traces[1][step]), step


def test_the_vocabulary_is_saved_with_the_model_which_can_be_saved_over_itself(folder):
    assert Model.load(folder).vocabulary.words == Model.load("encoder").vocabulary.words
    assert Model.load(folder).encode(TEXT).ids == Model.load("encoder").encode(TEXT).ids
    model = Model.load(folder, device="cpu")
    before = model.trace(TEXT)["output.logits"]
    model.save(folder)
    assert np.array_equal(Model.load(folder, device="cpu").trace(TEXT)["output.logits"], before)


def test_of_two_tokenizers_that_of_the_model_saved_last_is_opened(folder):
    model, published = Model.load(folder), REFERENCES / "bert"
    for name in ("tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json", "source.spm"):
        shutil.copy(published / "tokenizer.json", folder / name)
    model.save(folder)
    again = Model.load(folder)
    assert again.vocabulary.words == model.vocabulary.words
    assert not (folder / "tokenizer.json").exists()
    # a published one over a word list
    published = Model.load(REFERENCES / "bert", device="cpu")
    published.save(folder)
    again = Model.load(folder, device="cpu")
    assert again.encode("the waves") == published.encode("the waves")


def test_characters_saved_with_a_model_cut_the_same_when_it_is_opened(tmp_path):
    words = build_characters(["The cat\n"], 20).vocabulary
    model = Model.load("decoder", vocabulary=words)
    model.save(tmp_path)
    assert Model.load(tmp_path).encode("The cat\n") == model.encode("The cat\n")
    assert Model.load(tmp_path).encode("The cat\n").ids == tuple(range(4, 12))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    refuses(r"file: cannot be made", lambda: Model.load("encoder", device="cpu").save(tmp_path / "file"))


def test_a_folder_without_a_vocabulary_reads_ids_only(reference):
    model = reference.model()
    assert model.trace(ids=[1, 2]).batch == 1
    refuses("has no vocabulary: give token IDs", lambda: model.trace("a text"))


@pytest.mark.parametrize("kind", ["config.json", "model.safetensors"])
def test_a_missing_file_and_a_folder_in_its_place_are_named(folder, kind):
    (folder / kind).unlink()
    assert f"{kind}: no such file" in refusal(folder)
    (folder / kind).mkdir()
    assert f"{kind}: a folder, not a file" in refusal(folder)


def test_parts_without_the_index_that_says_what_they_hold_are_said(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    said = refusal(folder)
    assert "model.safetensors.index.json: no such file: copy it, too" in said
    assert "model-00001-of-00001.safetensors" in said


CONFIGS = {
    "not JSON": (b"{", "not JSON"),
    "empty": (b"", "not JSON"),
    "not text": (b"\xff\xfe\x00{}", "not JSON"),
    "a list": (b"[1, 2]", "not a JSON object"),
    "null": (b"null", "not a JSON object"),
    "no model_type": (b"{}", "model_type None is not supported: vanilla, attention, "),
    "unknown model_type": (b'{"model_type": "mamba"}', "model_type 'mamba' is not supported"),
    "model_type a list": (b'{"model_type": ["vanilla"]}', "model_type ['vanilla'] is not supported"),
    "wrong type": (b'{"model_type": "vanilla", "d_model": "8"}', "d_model '8' is not a whole number"),
    "a fraction": (b'{"model_type": "vanilla", "layers": 1.5}', "layers 1.5 is not a whole number"),
    "huge number": (b'{"model_type": "vanilla", "layers": 1' + b"0" * 400 + b"}", "is not a whole number"),
    "endless number": (b'{"model_type": "vanilla", "layers": 1' + b"0" * 9000 + b"}", "not JSON"),
    "infinity": (b'{"model_type": "vanilla", "norm_epsilon": Infinity}', "norm_epsilon inf is not"),
    "an object": (b'{"model_type": "vanilla", "norm": {"a": 1}}', "norm {'a': 1} is not known"),
    "deep": (b'{"model_type": "vanilla", "d_model": ' + b"[" * 400 + b"]" * 400 + b"}", "d_model [[[["),
    "too deep": (b"[" * 200_000, "not JSON"),
    "long text": (b'{"model_type": "vanilla", "norm": "' + b"x" * 500_000 + b'"}', "is not known"),
    "escapes": (rb'{"model_type": "\u001b[2J"}', r"model_type '\x1b[2J' is not supported"),
    "attention sizes": (b'{"model_type": "attention", "length": 0}', "length 0 is not a whole number"),
    "attention mask": (b'{"model_type": "attention", "causal": []}', "causal [] is neither true nor false"),
    "larger than a configuration": (b" " * (1 << 20) + b"{}", "larger than such a file can be"),
}


@pytest.mark.parametrize(("content", "says"), CONFIGS.values(), ids=CONFIGS)
def test_a_broken_configuration_is_refused(folder, content, says):
    (folder / "config.json").write_bytes(content)
    text = refusal(folder)
    assert "config.json: " in text
    assert says in text


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Save the weights with a change."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def put(**options: Any) -> Callable[[dict[str, Any]], object]:
    """Numbers in place of the tensor."""
    return lambda tensors: tensors.update({TENSOR: np.ones(**options)})


TENSORS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "missing": (lambda tensors: tensors.pop(TENSOR), "is missing"),
    "other shape": (put(shape=(8, 4), dtype="f4"), "is 8 × 4, but config.json says 8 × 8"),
    "turned": (put(shape=64, dtype="f4"), "is 64, but config.json says 8 × 8"),
    "whole numbers": (put(shape=(8, 8), dtype="i8"), "is stored as I64: only F64, F32, F16"),
    "NaN": (lambda tensors: tensors[TENSOR].__setitem__((0, 0), np.nan), "holds NaN or infinity"),
    "infinity": (lambda tensors: tensors[TENSOR].__setitem__((7, 7), -np.inf), "holds NaN or infinity"),
}


@pytest.mark.parametrize(("change", "says"), TENSORS.values(), ids=TENSORS)
def test_a_tensor_that_does_not_fit_is_named(folder, change, says):
    rewritten(folder, change)
    text = refusal(folder)
    assert f"model.safetensors: tensor {TENSOR} {says}" in text


def with_header(folder: Path, change: Callable[[dict[str, Any]], object], more: str = "") -> None:
    """Write the weights' file with another header, more text at its end, and the same data."""
    raw = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    change(header)
    text = (json.dumps(header)[:-1] + more + "}").encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])


def as_float8(header: dict[str, Any]) -> None:
    """The same bytes, said to be numbers of one byte; what is too many becomes another tensor."""
    start, stop = header[TENSOR]["data_offsets"]
    header[TENSOR] |= {"dtype": "F8_E4M3", "data_offsets": [start, start + 64]}
    header["rest"] = {"dtype": "U8", "shape": [stop - start - 64], "data_offsets": [start + 64, stop]}


def said(**entries: Any) -> Callable[[dict[str, Any]], object]:
    """What a header says of the tensor."""
    return lambda header: header[TENSOR].update(entries)


HEADERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "offsets past the end": (
        lambda header: header["output.logits.weight"].update(data_offsets=[10**9, 10**9 + 256]),
        "are of no tensor, before tensor output.logits.weight",
    ),
    "offsets turned round": (
        lambda header: header[TENSOR].update(data_offsets=header[TENSOR]["data_offsets"][::-1]),
        f"the data_offsets of tensor {TENSOR} cannot be [",
    ),
    "negative offsets": (said(data_offsets=[-256, 0]), f"the data_offsets of tensor {TENSOR} cannot be [-256, 0]"),
    "overlap": (said(data_offsets=[0, 256]), f"tensors embedding.tokens.weight and {TENSOR} overlap"),
    "gap": (lambda header: header.pop(TENSOR), "are of no tensor, before tensor encoder.0.self_attention.value.weight"),
    "size that does not fit": (said(shape=[8, 9]), f"tensor {TENSOR} is 8 × 9 of F32, which is 288 bytes, but has 256"),
    "type that does not fit": (said(dtype="F16"), f"tensor {TENSOR} is 8 × 8 of F16, which is 128 bytes, but has 256"),
    "huge shape": (said(shape=[2**62, 2**62]), "bytes, but has 256"),
    "impossible shape": (said(shape=[0, 2**63]), f"the shape of tensor {TENSOR} can"),
    "endless shape": (
        said(shape=[8, 8] + [1] * 9999),
        f"the shape of tensor {TENSOR} cannot be [8, 8, 1, 1, 1, 1, ...]",
    ),
    "no offsets": (
        lambda header: header[TENSOR].pop("data_offsets"),
        f"the data_offsets of tensor {TENSOR} cannot be None",
    ),
    "text for a shape": (said(shape="8"), f"the shape of tensor {TENSOR} cannot be '8'"),
    "a list": (lambda header: header.update({TENSOR: list(header[TENSOR].values())}), f"tensor {TENSOR} has no dtype"),
    "escapes": (lambda header: header.update({"\x1b[2J": 1}), r"tensor '\x1b[2J' has no dtype"),
}


@pytest.mark.parametrize(("change", "says"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_lies_is_refused(folder, change, says):
    with_header(folder, change)
    text = refusal(folder)
    assert "model.safetensors: not a whole safetensors file (" in text
    assert says in text


def test_a_type_that_is_not_read_a_tensor_that_comes_twice_and_a_pointer_in_place_of_the_weights_are_named(folder):
    whole = (folder / "model.safetensors").read_bytes()
    with_header(folder, said(dtype="F7"))
    assert f"model.safetensors: tensor {TENSOR} is stored as F7: only F64, F32, F16, BF16" in refusal(folder)
    (folder / "model.safetensors").write_bytes(whole)
    with_header(folder, as_float8)
    assert f"model.safetensors: tensor {TENSOR} is stored as F8_E4M3" in refusal(folder)
    (folder / "model.safetensors").write_bytes(whole)
    with_header(folder, lambda header: None, f', "{TENSOR}": {{}}')
    assert f"its header has {TENSOR} twice" in refusal(folder)
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    assert "model.safetensors: a pointer of Git LFS, not the weights" in refusal(folder)


CONTENTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda raw: b"", "its header would end at byte 8, and the file has 0"),
    "four bytes": (lambda raw: raw[:4], "and the file has 4"),
    "cut in the header": (lambda raw: raw[:100], "and the file has 100"),
    "cut in the data": (lambda raw: raw[:-1], "tensor output.logits.weight ends at byte "),
    "longer than it says": (lambda raw: raw + b"\0", "are of no tensor, at the end"),
    "header length too large": (lambda raw: struct.pack("<Q", 1 << 40) + raw[8:], "its header would end at byte"),
    "header length wrong": (lambda raw: struct.pack("<Q", 17) + raw[8:], "its header is not JSON"),
    "largest header length": (lambda raw: b"\xff" * 8 + raw[8:], "its header would end at byte"),
    "header not JSON": (lambda raw: raw[:8] + b"x" * (len(raw) - 8), "its header is not JSON"),
    "header too deep": (lambda raw: struct.pack("<Q", 1 << 20) + b"[" * (1 << 20), "its header is not JSON"),
    "header a list": (lambda raw: struct.pack("<Q", 2) + b"[]", "its header is not a JSON object"),
    "a pickle": (lambda raw: b"\x80\x04\x95" + b"\0" * 200, "its header would end at byte"),
}


@pytest.mark.parametrize(("change", "says"), CONTENTS.values(), ids=CONTENTS)
def test_a_damaged_file_is_refused(folder, change, says):
    path = folder / "model.safetensors"
    path.write_bytes(change(path.read_bytes()))
    text = refusal(folder)
    assert "model.safetensors: not a whole safetensors file (" in text
    assert says in text


def test_an_odd_header_length_is_read_the_same(folder):
    """Data that do not lie at a multiple of their size are copied."""
    before = Model.load(folder, device="cpu").trace(TEXT)["output.logits"].copy()
    with_header(folder, lambda header: header.update(__metadata__={"odd": "x"}))
    (length,) = struct.unpack("<Q", (folder / "model.safetensors").read_bytes()[:8])
    with_header(folder, lambda header: None, " " * (1 + (-length) % 4))
    model = Model.load(folder, device="cpu")
    assert np.array_equal(model.trace(TEXT)["output.logits"], before)
    assert all(array.flags.aligned for array in model.weights.held.values())


@pytest.mark.parametrize("stored", ["f2", "f8"])
def test_other_float_types_are_read_in_the_model_precision(folder, stored):
    rewritten(folder, lambda tensors: tensors.update({name: array.astype(stored) for name, array in tensors.items()}))
    model, before = Model.load(folder, device="cpu"), Model.load("encoder", device="cpu")
    trace, wanted = model.trace(TEXT), before.trace(TEXT)
    assert trace["output.logits"].dtype == np.float32
    np.testing.assert_allclose(trace["output.logits"], wanted["output.logits"], atol=2e-2 if stored == "f2" else 0)


def test_nothing_is_read_before_it_is_asked_for_and_what_is_not_known_not_at_all(folder):
    rewritten(folder, lambda tensors: tensors.update(extra=np.ones(3, "f4")))
    assert Model.load(folder, device="cpu").trace(TEXT)["output.logits"].shape == (8, 8)
    rewritten(folder, TENSORS["NaN"][0])
    model = Model.load(folder, device="cpu")
    assert model.weights.held == {}
    assert model.trace(TEXT)["embedding.output"].shape == (8, 8)


def test_sizes_that_do_not_fit_the_weights_name_the_tensor_or_the_vocabulary(folder):
    with pytest.raises(InputError, match=r"vocabulary english has \d+ words, the model 8 embedding rows"):
        Model.load(folder, vocabulary="english")
    reconfigured(folder, d_ff=64)
    text = refusal(folder)
    assert "model.safetensors: tensor encoder.0.feed_forward.hidden.weight is 8 × 128" in text
    assert "config.json says 8 × 64" in text


def test_a_folder_copied_elsewhere_works(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    assert Model.load(tmp_path / "copy").name == "copy"
