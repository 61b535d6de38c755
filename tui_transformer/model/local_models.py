"""Where models are: folders, files, installed packages, and the local cache of Hugging Face. Nothing is downloaded."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from tui_transformer.errors import InputError
from tui_transformer.files import expanded, home_of, is_file, is_there, may_open, meant, read_json
from tui_transformer.gate import gate
from tui_transformer.gguf_file import is_gguf
from tui_transformer.model.checkpoint import CONFIG
from tui_transformer.model.other_files import WEIGHTS, refuse_file
from tui_transformer.model.sentence import MODULES
from tui_transformer.records import dataclass

Source = Literal["trained", "folder", "package", "cache", "ollama", "llama.cpp"]
MODEL_LAYER = "application/vnd.ollama.image.model"
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


PROGRAM = Path(__file__).resolve().parent.parent
"""The package of the program: as a package it carries no model, those that come with it have names of their own."""

TRAINED = PROGRAM / "trained"
"""The models that come with the program, a folder each."""

ABOUT = "about.toml"
"""The file of what was measured of such a model, in its folder."""

IN_CACHE = "models--"
"""In front of the names of folders of the cache."""

DEEPEST, MOST_FOLDERS = 5, 10_000
"""How far below a package checkpoints are looked for."""

_WEIGHTS_FILE = re.compile(r"model(-\d+-of-\d+)?\.safetensors(\.index\.json)?")
_WEIGHTS_ENDING = re.compile(r"\.(safetensors|gguf)[,\"]")
_PACKAGE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_CACHE_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def find_model(where: str | Path) -> LocalModel | None:
    """The checkpoint of a folder, of a file in it, of an installed package, or of the cache; None where there is none.

    Raises:
        InputError: The file is not of a checkpoint, the package has several, or a visitor may not open it.
    """
    if isinstance(where, str) and where in trained_models():
        return LocalModel(where, "trained", TRAINED / where)
    path = meant(where)
    if may_open(path) and is_there(path):
        return _in_folder(path)
    name = where if isinstance(where, str) else ""
    found = _in_package(name)
    if found is None and _CACHE_NAME.fullmatch(name):  # as its branch main was when it was last downloaded
        folder = _snapshot(cache_folder() / f"{IN_CACHE}{name.replace('/', '--')}")
        found = None if folder is None else LocalModel(name, "cache", folder)
    if found is None:
        known = {each.name: each for each in (*_cached(), *stored_models())}
        names = name, f"{name}:latest", named_alike(name, known)  # Ollama's tag may be left out
        found = next((known[each] for each in names if each in known), None)
    if found is not None and may_open(found.folder):
        return found
    expanded(where)  # says what a visitor may not open
    return None


def named_alike(name: str, names: Iterable[str]) -> str | None:
    """The one of these names that is meant, where `-` and `_` are the same; None where there is none."""
    alike = [each for each in names if each.replace("-", "_") == name.replace("-", "_")]
    return name if name in alike else next(iter(alike), None)


def nowhere(where: str | Path) -> InputError:
    """Error for an unknown model."""
    advice = "`tui-transformer models` lists those on this computer"
    if isinstance(where, str) and "/" in where and _CACHE_NAME.fullmatch(where):
        advice += f", `tui-transformer fetch {where}` downloads one"
    return InputError(f"{where}: no such folder, and no model of this name: {advice}")


def trained_models() -> tuple[str, ...]:
    """The names of the models that come with the program, sorted."""
    return tuple(sorted(path.parent.name for path in TRAINED.glob(f"*/{CONFIG}")))


def local_models() -> tuple[LocalModel, ...]:
    """Every checkpoint that comes with the program, in the cache and in installed packages, by name.

    To visitors those that they may open, and what lies in their folder.
    """
    trained = (LocalModel(name, "trained", TRAINED / name) for name in trained_models())
    closed = gate()
    if closed is not None:
        below = [] if closed.folder is None else [each for each in _checkpoints(closed.folder) if may_open(each)]
        return (*trained, *(LocalModel(str(each.relative_to(closed.folder or each)), "folder", each) for each in below))
    return (*trained, *_cached(), *_packaged(), *stored_models())


def sentence_models() -> Iterator[LocalModel]:
    """Those of `local_models` that make vectors of sentences."""
    return (each for each in local_models() if is_file(each.folder / MODULES))


def _in_folder(path: Path) -> LocalModel:
    if path.is_dir():
        return LocalModel(_name_of(path), "folder", path)
    refuse_file(path)
    if is_gguf(path):
        return LocalModel(path.stem, "folder", path)
    if path.name != CONFIG and not _WEIGHTS_FILE.fullmatch(path.name):
        raise InputError(f"{path}: not a checkpoint: name its folder, its {CONFIG} or its {WEIGHTS}")
    return LocalModel(_name_of(path.parent), "folder", path.parent)


def _name_of(folder: Path) -> str:
    """The folder's name; in the cache, where that is a commit, the model's."""
    whole = folder.resolve()
    above = whole.parent.parent.name
    if whole.parent.name == "snapshots" and above.startswith(IN_CACHE):
        return _cache_name(above)
    # of a folder "model" the folder that it lies in says more
    return whole.parent.name if whole.name == "model" and whole.parent.name else whole.name


# Packages


def _in_package(name: str) -> LocalModel | None:
    """The checkpoint that an installed package carries; the package is not imported."""
    if not _PACKAGE_NAME.fullmatch(name):
        return None
    folders = _package_checkpoints(name)
    if len(folders) > 1:
        listed = ", ".join(map(str, folders[:5]))
        raise InputError(f"the package {name} carries {len(folders)} checkpoints: name the folder of one: {listed}")
    return LocalModel(name.replace("-", "_"), "package", folders[0]) if folders else None


def _package_checkpoints(name: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(name.replace("-", "_"))
    except (ImportError, ValueError):
        return []
    places = [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
    places = [place for place in places if place.resolve() != PROGRAM]
    return [folder for place in places for folder in _checkpoints(place)]


def _checkpoints(root: Path) -> list[Path]:
    """The folders at and below a root, to a depth, that hold a configuration and weights."""
    folders = []
    for (place, below, _), _count in zip(os.walk(root), range(MOST_FOLDERS), strict=False):
        folder = Path(place)
        if len(folder.relative_to(root).parts) >= DEEPEST:
            below.clear()
        if _is_checkpoint(folder) and not is_file(folder.parent / MODULES):
            folders.append(folder)
    return sorted(folders)


def _is_checkpoint(folder: Path) -> bool:
    return bool(_files(folder, "*.gguf") or (_files(folder, CONFIG) and _files(folder, "*.safetensors")))


def _packaged() -> Iterator[LocalModel]:
    """The checkpoints of installed packages, from the lists of their files, where these can be read."""
    from importlib.metadata import distributions

    names: set[str] = set()
    for each in distributions():
        try:
            lines = (each.read_text("RECORD") or "").splitlines()
        except (OSError, ValueError):
            continue
        tops = (line.split("/")[0].strip('"') for line in lines if _WEIGHTS_ENDING.search(line))
        names.update(filter(_PACKAGE_NAME.fullmatch, tops))
    for name in sorted(names):
        folders = _package_checkpoints(name)
        for folder in folders:
            yield LocalModel(name if len(folders) == 1 else str(folder), "package", folder)


# Stores of GGUF files


def stored_models() -> Iterator[LocalModel]:
    """Every model that Ollama and llama.cpp keep, by name: in Ollama's store a manifest of each tag names its file."""
    root = home_of(os.environ.get("OLLAMA_MODELS") or "~/.ollama/models")
    for manifest in _files(root / "manifests", "*/*/*/*"):
        owner, name, tag = manifest.parts[-3:]
        blob = _blob(root, manifest)
        if blob is not None:
            yield LocalModel(f"{name}:{tag}" if owner == "library" else f"{owner}/{name}:{tag}", "ollama", blob)
    cache = home_of(os.environ.get("LLAMA_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/llama.cpp")
    yield from (LocalModel(path.stem, "llama.cpp", path) for path in _files(cache, "*.gguf"))


def _blob(root: Path, manifest: Path) -> Path | None:
    try:
        layers = read_json(manifest, 1 << 20).get("layers")
    except InputError:
        return None
    for layer in layers if isinstance(layers, list) else []:
        digest = layer.get("digest") if isinstance(layer, Mapping) and layer.get("mediaType") == MODEL_LAYER else None
        if isinstance(digest, str) and _DIGEST.fullmatch(digest):
            blob = root / "blobs" / digest.replace(":", "-")
            return blob if blob.is_file() else None
    return None


def _files(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path for path in root.glob(pattern) if path.is_file())
    except OSError:
        return []


# The cache


def cache_folder() -> Path:
    """Where the libraries of Hugging Face keep what they download."""
    home = os.environ.get("HF_HOME") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    return home_of(os.path.expandvars(os.environ.get("HF_HUB_CACHE") or f"{home}/hub"))


def _snapshot(model: Path) -> Path | None:
    try:
        commit = (model / "refs" / "main").read_text(encoding="ascii").strip()
        folder = model / "snapshots" / commit
        return folder if re.fullmatch(r"[0-9A-Za-z]+", commit) and folder.is_dir() else None
    except (OSError, ValueError):
        return None


def _cached() -> Iterator[LocalModel]:
    root = cache_folder()
    try:
        names = sorted(path.name for path in root.iterdir() if path.name.startswith(IN_CACHE))
    except (OSError, ValueError):
        return
    for name in names:
        folder = _snapshot(root / name)
        if folder is not None and _is_checkpoint(folder):
            yield LocalModel(_cache_name(name), "cache", folder)


def _cache_name(name: str) -> str:
    return name.removeprefix(IN_CACHE).replace("--", "/", 1)
