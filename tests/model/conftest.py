"""A checkpoint in a folder, whole and in two files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from reference import with_settings
from safetensors.numpy import load_file, save_file
from saved import INDEX, SHARDS

from tui_transformer.model import Model


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Model]:
    """A reference checkpoint with other settings, in float64."""

    def load(family: str, **settings: object) -> Model:
        return Model.load(with_settings(tmp_path, family, **settings), device="cpu", dtype="float64")

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
