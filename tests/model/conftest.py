"""A checkpoint in a folder, whole and in two files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import in_float64, with_settings
from safetensors.numpy import load_file, save_file
from saved import INDEX, SHARDS

from tui_transformer.model import Model


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Model]:
    """A reference checkpoint with other settings, or other tensors too, in a folder of its own, in float64."""
    numbers = count()

    def load(family: str, tensors: Mapping[str, Any] | None = None, **settings: object) -> Model:
        folder = with_settings(tmp_path / f"changed {next(numbers)}", family, **settings)
        if tensors is not None:
            contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
            save_file(contiguous, folder / "model.safetensors")
        return in_float64(folder)

    return load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole checkpoint."""
    Model.load("encoder", device="cpu").save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def sharded(folder: Path) -> Path:
    """The same checkpoint in two files."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weight_map = {name: SHARDS[i % 2] for i, name in enumerate(sorted(tensors))}
    for shard in SHARDS:
        save_file({name: tensors[name] for name in tensors if weight_map[name] == shard}, folder / shard)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return folder
