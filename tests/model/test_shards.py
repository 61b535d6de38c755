"""Weights in several files, by their index."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from saved import INDEX, SHARDS, TENSOR, logits, refusal

from tui_transformer.model import Model


def test_several_files_are_read_as_one(sharded):
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_one_file_comes_before_an_index(sharded):
    Model.load("encoder", device="cpu").save(sharded)
    (sharded / INDEX).write_text("{")
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_the_files_of_an_index_may_be_links(sharded, tmp_path):
    (tmp_path / "blobs").mkdir()
    for shard in SHARDS:
        shutil.move(sharded / shard, tmp_path / "blobs" / shard[:11])
        (sharded / shard).symlink_to(tmp_path / "blobs" / shard[:11])
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_a_missing_shard_is_named(sharded):
    (sharded / SHARDS[1]).unlink()
    assert f"{SHARDS[1]}: no such file" in refusal(sharded)


def test_a_cut_shard_is_named(sharded):
    (sharded / SHARDS[0]).write_bytes((sharded / SHARDS[0]).read_bytes()[:-1])
    assert f"{SHARDS[0]}: not a whole safetensors file (" in refusal(sharded)


def changed_shard(folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    """Change the shard that has the tensor; its name."""
    shard = json.loads((folder / INDEX).read_text())["weight_map"][TENSOR]
    tensors = load_file(folder / shard)
    change(tensors)
    save_file(tensors, folder / shard)
    return str(shard)


def test_a_tensor_that_is_not_in_its_shard_is_named(sharded):
    shard = changed_shard(sharded, lambda tensors: tensors.pop(TENSOR))
    assert f"{shard}: tensor {TENSOR} is missing, and {INDEX} says that it is there" in refusal(sharded)


def test_a_tensor_that_no_index_names_is_named(sharded):
    changed_shard(sharded, lambda tensors: tensors.pop(TENSOR))
    index = json.loads((sharded / INDEX).read_text())
    del index["weight_map"][TENSOR]
    (sharded / INDEX).write_text(json.dumps(index))
    assert f"{INDEX}: tensor {TENSOR} is missing: the file does not fit its config.json" in refusal(sharded)


def test_what_is_wrong_in_a_shard_names_the_shard(sharded):
    shard = changed_shard(sharded, lambda tensors: tensors[TENSOR].__setitem__((0, 0), np.nan))
    assert f"{shard}: tensor {TENSOR} holds NaN or infinity" in refusal(sharded)
    shard = changed_shard(sharded, lambda tensors: tensors.update({TENSOR: np.ones((4, 4), "f4")}))
    assert f"{shard}: tensor {TENSOR} is 4 × 4, but config.json says 8 × 8" in refusal(sharded)


@pytest.mark.parametrize("where", [0, -1])
def test_a_tensor_in_two_shards_is_read_where_the_index_says(sharded, where):
    weight_map = json.loads((sharded / INDEX).read_text())["weight_map"]
    name = next(name for name, shard in weight_map.items() if shard == SHARDS[where])
    other = SHARDS[-1 - where]
    zeros = np.zeros_like(load_file(sharded / SHARDS[where])[name])
    save_file(load_file(sharded / other) | {name: zeros}, sharded / other)
    assert np.array_equal(logits(sharded), logits("encoder"))


OUTSIDE = ["../model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", "", "C:model", "..\\model", "a\0b"]


@pytest.mark.parametrize("place", OUTSIDE)
def test_a_shard_outside_the_folder_is_not_opened(sharded, place):
    (sharded / INDEX).write_text(json.dumps({"weight_map": {TENSOR: place}}))
    assert f"{INDEX}: tensor {TENSOR} is in {place!r}, which is not a file beside it: not opened" in refusal(sharded)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 1}}'])
def test_an_index_without_a_map_is_refused(sharded, content):
    (sharded / INDEX).write_text(content)
    assert f"{INDEX}: no weight_map" in refusal(sharded)


@pytest.mark.parametrize("content", ["", "{", "[" * 200_000])
def test_an_index_that_is_not_json_is_refused(sharded, content):
    (sharded / INDEX).write_text(content)
    assert f"{INDEX}: not JSON" in refusal(sharded)
