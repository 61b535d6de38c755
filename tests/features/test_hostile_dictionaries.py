"""Broken dictionaries: settings and weights, each read or refused in one line that names the file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, as_json, changed, damaged, hold_file
from hypothesis import strategies as st
from placing import HERE

from tui_transformer.features.dictionary import Features
from tui_transformer.features.labels import read_labels


@np.errstate(all="ignore")
def used(folder: Path) -> np.ndarray:
    """What a dictionary makes of activations, by way of its features."""
    features = Features.load(folder)
    x = np.ones((2, features.width), np.float32)
    x = np.stack([x] * len(features.layers)) if features.is_cross else x
    return features.decode(features.encode(x), x)


@COUNTS
@pytest.mark.parametrize("name", ["saelens-topk", "saelens-gated", "sparsify-groupmax"])
def test_broken_settings(tmp_path: Path, count: int, name: str) -> None:
    folder = Path(shutil.copytree(HERE / name, tmp_path / name))
    path = folder / "cfg.json"
    settings = json.loads(path.read_text())
    broken = st.one_of(changed(settings).map(as_json), damaged(as_json(settings)))
    hold_file(count, path, broken, lambda: used(folder), *folder.iterdir())


@COUNTS
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("saelens-standard", "sae_weights.safetensors"),
        ("sparsify-topk", "sae.safetensors"),
        ("gemma-scope", "params.npz"),
        ("circuit-tracer-jumprelu", "layer_0.safetensors"),
        ("circuit-tracer-cross-layer", "W_dec_0.safetensors"),
        ("circuit-tracer-cross-layer", "W_enc_1.safetensors"),
    ],
)
def test_broken_weights(tmp_path: Path, count: int, name: str, file: str) -> None:
    folder = Path(shutil.copytree(HERE / name, tmp_path / name))
    path = folder / file
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")

    def with_header(document: object) -> bytes:
        text = as_json(document)
        return len(text).to_bytes(8, "little") + text + raw[8 + length :]

    broken = damaged(raw)
    if file.endswith(".safetensors"):
        broken = st.one_of(changed(json.loads(raw[8 : 8 + length])).map(with_header), broken)
    hold_file(count, path, broken, lambda: used(folder), folder, *folder.iterdir())


LABELS = [{"index": "12", "description": "the sea"}, {"feature": 3, "label": "ships"}]


@COUNTS
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv"])
def test_broken_labels(tmp_path: Path, count: int, name: str) -> None:
    path = tmp_path / name
    right = {
        "a.json": as_json(LABELS),
        "a.jsonl": b"".join(as_json(each) + b"\n" for each in LABELS),
        "a.csv": b"feature,label\n12,the sea\n3,ships\n",
    }[name]
    broken = st.one_of(changed(LABELS).map(as_json), damaged(right)) if name == "a.json" else damaged(right)
    hold_file(count, path, broken, lambda: read_labels(path))
