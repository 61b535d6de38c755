"""Where models are found: folders, files, installed packages, and the cache of Hugging Face."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, broken_json, hold
from saved import INDEX, SHARDS, logits, refusal

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.local_models import (
    MODEL_LAYER,
    LocalModel,
    cache_folder,
    find_model,
    local_models,
    stored_models,
)


def test_a_weights_file_names_its_checkpoint(folder):
    assert Model.load(str(folder / "model.safetensors")).name == folder.parent.name


def test_files_of_a_checkpoint_name_it_and_others_do_not(folder, sharded):
    assert find_model(folder / "config.json") == LocalModel(folder.parent.name, "folder", folder)
    for name in ("config.json", INDEX, *SHARDS):
        assert np.array_equal(logits(folder / name), logits("encoder"))
    (folder / "model_old.safetensors").touch()
    for name in ("vocabulary.txt", "model_old.safetensors"):
        assert f"{name}: not a checkpoint: name its folder" in refusal(folder / name)


@pytest.fixture
def package(folder, tmp_path, monkeypatch) -> Path:
    """An installed package that carries a checkpoint and must not be imported."""
    root = tmp_path / "site" / "carrying_package"
    shutil.copytree(folder, root / "data" / "small")
    (root / "__init__.py").write_text("raise RuntimeError('imported')")
    about = tmp_path / "site" / "carrying_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: carrying-package\nVersion: 1.0\n")
    files = [path.relative_to(tmp_path / "site").as_posix() for path in root.rglob("*") if path.is_file()]
    (about / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))
    monkeypatch.syspath_prepend(tmp_path / "site")
    return root


@pytest.mark.parametrize("name", ["carrying_package", "carrying-package"])
def test_a_package_carries_a_checkpoint(package, name):
    assert find_model(name) == LocalModel("carrying_package", "package", package / "data" / "small")
    model = Model.load(name, device="cpu")
    assert {model.name, model.changed(dtype="float64").name} == {"carrying_package"}
    assert np.array_equal(logits(name), logits("encoder"))
    assert "carrying_package" not in sys.modules


def test_a_package_with_two_checkpoints_has_one_named_and_one_without_is_no_model(package):
    shutil.copytree(package / "data" / "small", package / "data" / "large")
    message = refusal("carrying_package")
    assert "carries 2 checkpoints: name the folder of one: " in message
    assert str(package / "data" / "large") in message
    assert "numpy: no such folder, and no model of this name" in refusal("numpy")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(folder, tmp_path, monkeypatch) -> Path:
    """A cache with one model, in the layout of Hugging Face: links to blobs."""
    root = tmp_path / "hub"
    model = root / "models--some-org--some.model"
    snapshot = model / "snapshots" / COMMIT
    (model / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(folder.iterdir()):
        shutil.copy(path, model / "blobs" / str(number))
        (snapshot / path.name).symlink_to(Path("../../blobs") / str(number))
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT)
    monkeypatch.setenv("HF_HUB_CACHE", str(root))
    return root


def test_a_cached_model_is_found_without_the_network_behind_folders_and_by_its_name_alone(cache, monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    model = Model.load("some-org/some.model", device="cpu")
    assert (model.name, model.folder.name) == ("some-org/some.model", COMMIT)
    assert model.changed(dtype="float64").name == "some-org/some.model"
    assert np.array_equal(logits("some-org/some.model"), logits("encoder"))
    assert Model.load(model.folder).name == "some-org/some.model"
    shutil.copytree(folder, folder.parent / "some-org" / "some.model")
    monkeypatch.chdir(folder.parent)
    assert find_model("some-org/some.model").source == "folder"


def test_a_cache_that_points_nowhere_has_no_model_and_names_that_none_has_are_refused(cache):
    for content in ("", "../../other", "no-such", "é", "a/b", ".."):
        (cache / "models--some-org--some.model" / "refs" / "main").write_text(content, encoding="utf-8")
        assert "`tui-transformer fetch some-org/some.model` downloads one" in refusal("some-org/some.model")
        assert [each for each in local_models() if each.source == "cache"] == []
    for name in ("../some.model", "some-org/../x", "some-org//some.model", "a/b/c", "/", "org/", ""):
        with pytest.raises(InputError):
            Model.load(name, device="cpu")


PLACES = {
    "HF_HUB_CACHE": ({"HF_HUB_CACHE": "/a/b", "HF_HOME": "/c", "XDG_CACHE_HOME": "/d"}, "/a/b"),
    "HF_HOME": ({"HF_HOME": "/c", "XDG_CACHE_HOME": "/d"}, "/c/hub"),
    "XDG_CACHE_HOME": ({"XDG_CACHE_HOME": "/d"}, "/d/huggingface/hub"),
    "none": ({"HOME": "/e"}, "/e/.cache/huggingface/hub"),
    "~ and a variable": ({"HOME": "/e", "HF_HUB_CACHE": "~/$PLACE", "PLACE": "f"}, "/e/f"),
}


@pytest.mark.skipif(os.name == "nt", reason="paths of other systems")
@pytest.mark.parametrize(("variables", "place"), PLACES.values(), ids=PLACES)
def test_the_cache_is_where_the_environment_says(monkeypatch, variables, place):
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(place)


def test_what_is_found_is_listed(cache, package):
    (cache / "models--some-org--pickled" / "refs").mkdir(parents=True)
    (cache / "datasets--some-org--data").mkdir()
    listed = {each.name: each for each in local_models()}
    assert listed["some-org/some.model"].source == "cache"
    assert listed["carrying_package"].folder == package / "data" / "small"
    assert "some-org/pickled" not in listed
    assert all(find_model(name) for name in listed)


def test_the_command_says_where_it_looked(tmp_path, monkeypatch, capsys):
    from tui_transformer.cli.info import Models
    from tui_transformer.model import local_models

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    monkeypatch.setattr(local_models, "local_models", lambda: ())
    Models().run()
    assert f"no other model is in {tmp_path / 'none'}" in capsys.readouterr().err


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


def test_a_name_as_it_is_listed_comes_before_one_whose_tag_is_left_out(tmp_path, monkeypatch):
    for key, folder in (("OLLAMA_MODELS", "ollama"), ("LLAMA_CACHE", "cpp"), ("HF_HUB_CACHE", "none")):
        monkeypatch.setenv(key, str(tmp_path / folder))
    tags, blob = tmp_path / "ollama/manifests/a.registry/library/tiny", tmp_path / f"ollama/blobs/sha256-{BLOB}"
    for folder in (tags, blob.parent, tmp_path / "cpp"):
        folder.mkdir(parents=True)
    blob.touch()
    (tags / "latest").write_text(json.dumps(MANIFEST))
    assert find_model("tiny").source == "ollama"
    (tmp_path / "cpp/tiny.gguf").touch()
    assert [find_model(name).source for name in ("tiny", "tiny:latest")] == ["llama.cpp", "ollama"]


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

    hold(count, check, data=broken_json(MANIFEST))
