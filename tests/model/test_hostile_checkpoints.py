"""Broken checkpoints: headers, indexes and configurations, each read or refused in one line that names the file."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import COUNTS, as_json, changed, damaged, hold, read_or_refused
from hypothesis import strategies as st
from reference import REFERENCES
from safetensors.numpy import load_file, save, save_file

from tui_transformer import gguf_file
from tui_transformer.generation.rules import defaults_of
from tui_transformer.gguf_file import read_gguf
from tui_transformer.model import Model
from tui_transformer.model.tensors import STORED, Tensors, open_file, open_index

FAMILIES = sorted(path.parent.name for path in REFERENCES.glob("*/config.json"))
SMALL = {"first": np.arange(6, dtype="f4").reshape(2, 3), "second": np.ones(4, "f2"), "third": np.zeros((), "f8")}


def read_all(tensors: Tensors) -> dict[str, np.ndarray]:
    """Every tensor of a type that is read."""
    kinds = {name: tensor.kind for name, tensor in tensors.by_name.items()}
    return {name: tensors.read(name, np.asarray) for name, kind in kinds.items() if kind in STORED}


def parts(raw: bytes) -> tuple[Any, bytes]:
    """Header and data of a safetensors file."""
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


@COUNTS
def test_broken_weights(tmp_path, count):
    path, raw = tmp_path / "model.safetensors", save(SMALL)
    header, data = parts(raw)

    def check(content: bytes) -> None:
        path.write_bytes(content)
        arrays = read_or_refused(lambda: read_all(open_file(path)), path)
        for name, array in (arrays or {}).items():
            assert array.nbytes <= 2 * len(content), name

    def with_header(document: Any) -> bytes:
        text = as_json(document)
        return len(text).to_bytes(8, "little") + text + data

    hold(count, check, content=st.one_of(changed(header).map(with_header), damaged(raw)))


@COUNTS
def test_a_broken_index(tmp_path, count):
    path = tmp_path / "model.safetensors.index.json"
    for name in SMALL:
        save_file({name: SMALL[name]}, tmp_path / f"{name}.safetensors")
    index = {"metadata": {"total_size": 40}, "weight_map": {name: f"{name}.safetensors" for name in SMALL}}

    def check(content: bytes) -> None:
        path.write_bytes(content)
        files = [tmp_path / f"{name}.safetensors" for name in SMALL]
        for name, array in (read_or_refused(lambda: read_all(open_index(path)), path, *files) or {}).items():
            assert np.array_equal(array, SMALL[name])

    hold(count, check, content=st.one_of(changed(index).map(as_json), damaged(as_json(index))))


@COUNTS
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


GENERATION = {
    "eos_token_id": [2, 3],
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 2,
    "bad_words_ids": [[5]],
    "do_sample": True,
    "temperature": 0.7,
    "top_k": 50,
    "top_p": 0.9,
    "repetition_penalty": 1.2,
    "num_beams": 4,
    "min_length": 3,
    "suppress_tokens": [1],
}


@COUNTS
def test_broken_settings_of_generation(tmp_path, count):
    folder = tmp_path / "model"
    shutil.copytree(REFERENCES / "bart", folder)
    model, path = Model.load(folder, device="cpu"), folder / "generation_config.json"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        read_or_refused(lambda: defaults_of(model), path)

    hold(count, check, content=st.one_of(changed(GENERATION).map(as_json), damaged(as_json(GENERATION))))


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


def test_the_files_that_are_broken_here_are_whole(tmp_path):
    save_file(SMALL, tmp_path / "model.safetensors")
    assert (
        read_all(open_file(tmp_path / "model.safetensors")).keys() == load_file(tmp_path / "model.safetensors").keys()
    )


OF_LLAMA_CPP = (
    "llama",
    "gemma3",
    "olmo3",
    "phi3",
    "qwen2_moe",
    "gpt_oss",
    "falcon",
    "bloom",
    "stablelm",
    "bert",
    "gpt2",
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
