"""Shared by the tests of checkpoints in folders: names in them, and whether they are read or refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from refusing import refuses

from tui_transformer.model import Model

TEXT = "The waves crashed forcefully against the shore!"
TENSOR = "encoder.0.self_attention.query.weight"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = "model.safetensors.index.json"


def logits(where: str | Path) -> np.ndarray[Any, Any]:
    return np.array(Model.load(where, device="cpu").trace(TEXT)["output.logits"])


def refusal(where: str | Path, most: int = 400) -> str:
    """The one line that says why a folder cannot be used, at the latest when its weights are read."""
    text = refuses("", lambda: Model.load(where, device="cpu").trace(ids=[1, 2]).compute())
    assert len(text) < most + len(str(where))
    return text


def write_raw(path: Path, tensors: dict[str, tuple[str, Any]]) -> None:
    """Write a safetensors file with types that NumPy does not name."""
    header, place = {}, 0
    for name, (kind, array) in tensors.items():
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for _, array in tensors.values()))
