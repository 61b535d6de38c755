"""Broken manifests of Ollama: what they do not name is not found, and nothing outside the store is."""

from __future__ import annotations

import json

from hostile import COUNTS, as_json, changed, damaged, hold
from hypothesis import strategies as st

from tui_transformer.model.local_models import MODEL_LAYER, stored_models

DIGEST = "ab" * 32
MANIFEST = {
    "schemaVersion": 2,
    "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:" + "0" * 64},
    "layers": [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "1" * 64, "size": 7},
        {"mediaType": MODEL_LAYER, "digest": f"sha256:{DIGEST}", "size": 9},
    ],
}


@COUNTS
def test_broken_manifests(tmp_path, monkeypatch, count):
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "none"))
    tags = tmp_path / "manifests" / "a.registry" / "library" / "tiny"
    blob = tmp_path / "blobs" / f"sha256-{DIGEST}"
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
