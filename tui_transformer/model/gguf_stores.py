"""GGUF files that other programs keep: Ollama's store and llama.cpp's cache. Nothing is downloaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tui_transformer.errors import InputError
from tui_transformer.files import expanded, read_json

Source = Literal["trained", "folder", "package", "cache", "ollama", "llama.cpp"]
MODEL_LAYER = "application/vnd.ollama.image.model"
LIBRARY = "library"
LARGEST_MANIFEST = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class LocalModel:
    """A checkpoint on this computer.

    Attributes:
        name: What `--model` takes: the name of a package, `org/name`, or the folder.
        source: The kind of place: "trained", "cache", "package" …
        folder: Where its config.json is, or the GGUF file.
    """

    name: str
    source: Source
    folder: Path


def stored_models() -> Iterator[LocalModel]:
    """Every model of both, by name."""
    yield from _ollama()
    yield from (LocalModel(path.stem, "llama.cpp", path) for path in _files(llama_cpp_folder(), "*.gguf"))


def ollama_folder() -> Path:
    """Where Ollama keeps models."""
    return _folder("OLLAMA_MODELS", "~/.ollama/models")


def llama_cpp_folder() -> Path:
    """Where llama.cpp keeps what it downloads."""
    return _folder("LLAMA_CACHE", f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/llama.cpp")


def _folder(variable: str, usual: str) -> Path:
    return expanded(os.environ.get(variable) or usual)


def _ollama() -> Iterator[LocalModel]:
    """The models of the store: a manifest of each tag names the file that has its weights."""
    root = ollama_folder()
    for manifest in _files(root / "manifests", "*/*/*/*"):
        owner, name, tag = manifest.parts[-3:]
        blob = _blob(root, manifest)
        if blob is not None:
            yield LocalModel(f"{name}:{tag}" if owner == LIBRARY else f"{owner}/{name}:{tag}", "ollama", blob)


def _blob(root: Path, manifest: Path) -> Path | None:
    try:
        layers = read_json(manifest, LARGEST_MANIFEST).get("layers")
    except InputError:
        return None
    models = [layer for layer in layers if _is_model(layer)] if isinstance(layers, list) else []
    blob = root / "blobs" / str(models[0]["digest"]).replace(":", "-") if models else None
    return blob if blob is not None and blob.is_file() else None


def _is_model(layer: Any) -> bool:
    is_map = isinstance(layer, Mapping) and layer.get("mediaType") == MODEL_LAYER
    return is_map and isinstance(layer.get("digest"), str) and _DIGEST.fullmatch(layer["digest"]) is not None


def _files(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in root.glob(pattern) if path.is_file())
    except OSError:
        return []
