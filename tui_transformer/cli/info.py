"""What there is: `info`, of the machine; `models`, what `--model` can name; `fetch`, from the hub of Hugging Face."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tui_transformer.cli.options import Device
from tui_transformer.cli.output import emit, emit_json, note
from tui_transformer.cli.typer_layer import argument, flag
from tui_transformer.errors import InputError
from tui_transformer.machine import THREADS, available_memory, processors, readable
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

    from tui_transformer.model.local_models import LocalModel


@dataclass(frozen=True, kw_only=True)
class Info:
    """Show versions, the device in use and why, and what machine and terminal offer.

    Example: tui-transformer info --json
    """

    device: Device = "auto"
    json: bool = flag("As one JSON object.")

    def run(self) -> None:
        from tui_transformer.crash import versions

        facts = versions() | dict(self._facts())
        if self.json:
            emit_json(facts)
            return
        width = max(map(len, facts))
        emit(f"{name:<{width}}  {visible(value)}\n" for name, value in facts.items())

    def _facts(self) -> Iterator[tuple[str, str]]:
        import numpy as np

        from tui_transformer.engine.backend import choose_backend, find_gpu
        from tui_transformer.text.dispatch import load_vocabulary
        from tui_transformer.text.vocabulary import built_in_vocabularies

        backend = choose_backend(self.device, small=self.device == "auto")
        yield "device", f"{backend.device} ({backend.name})"
        yield "why", backend.reason
        if backend.device == "gpu":
            yield "other", "cpu can be had: --device cpu"
        else:
            gpu = find_gpu()
            finding = (
                f"gpu can be had: {gpu.finding}: --device gpu" if gpu.cupy is not None else f"no gpu: {gpu.finding}"
            )
            yield "other", finding
        try:
            library = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
            yield "blas", f"{library['name']} {library['version']}"
        except (KeyError, TypeError):
            yield "blas", "not known"
        limits = (f"{name}={value}" for name in THREADS if (value := os.environ.get(name)))
        yield "threads", ", ".join([str(processors()), *limits])
        yield "memory", f"{readable(available_memory())} free"
        kind = os.environ.get("TERM", "not set")
        yield "terminal", f"{kind}, {'a terminal' if sys.stdout.isatty() else 'not a terminal'}"
        yield "colours", _colours(kind)
        names = built_in_vocabularies()
        folder = load_vocabulary(names[0]).path if names else None
        yield "vocabularies", f"{', '.join(names)} in {folder.parent if folder else 'no folder'}"


def _colours(kind: str) -> str:
    if "NO_COLOR" in os.environ:
        return "none: NO_COLOR is set"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "24 bit: COLORTERM says so"
    if "256color" in kind:
        return "256: TERM says so"
    return "none: TERM says so" if kind in ("dumb", "not set") else "16"


@dataclass(frozen=True, kw_only=True)
class Models:
    """List the models that --model can name: built in, in installed packages, and in the cache of Hugging Face.

    Example: tui-transformer models
    """

    def run(self) -> None:
        from tui_transformer.model.loading import BUILT_IN
        from tui_transformer.model.local_models import cache_folder, local_models
        from tui_transformer.report.numbers import aligned

        listed = local_models()
        given = {"attention": "attention alone, of given Q, K and V"}
        rows = [(name, "built in", "", given.get(name, "random weights")) for name in BUILT_IN]
        rows += [(each.name, each.source, _size(each.folder), _about(each)) for each in listed]
        emit(aligned([(*row[:3], visible(row[3])) for row in rows], right={2}))
        if not listed:
            note(f"no other model is in {visible(str(cache_folder()))} or in an installed package: name a folder")


def _size(folder: Path) -> str:
    try:
        files = [folder] if folder.is_file() else [*folder.glob("*.safetensors"), *folder.glob("*.gguf")]
        return readable(sum(path.stat().st_size for path in files if path.exists()))
    except OSError:
        return ""


def _about(listed: LocalModel) -> str:
    """A model in a line, or why it cannot be read: whatever is wrong with one, the others are listed."""
    from tui_transformer.learning.recipes import recipe
    from tui_transformer.model.checkpoint import read_config

    try:
        config = read_config(listed.folder)
        said = f"{config.model_type}: {config.summary}"
    except InputError as error:
        return str(error).removeprefix(f"{listed.folder}/")
    except Exception as error:  # noqa: BLE001 - a file that nobody thought of is not to end the list
        return f"cannot be read: {error or type(error).__name__}"
    return f"{recipe(listed.name).does} · {said}" if listed.source == "trained" else said


# From the hub

CONFIG = "config.json"
WANTED = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocabulary.txt"),
    *("vocab.txt", "vocab.json", "target_vocab.json", "merges.txt", "*.spm", "spiece.model", "tokenizer.model"),
    *("sentencepiece.bpe.model", "generation_config.json", "*.safetensors", "*.safetensors.index.json", CONFIG),
)
"""Files of a model that are fetched, in this order: those of folders in it, and pickled ones, are not."""

SECONDS = 20
"""To wait for an answer."""

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_YES = ("1", "ON", "YES", "TRUE")
"""What the library takes for a setting that is on."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """Download a model into the cache of Hugging Face; needs the extra `fetch`.

    Only the configuration, the safetensors weights and the files of the tokenizer are fetched.

    Example: tui-transformer fetch org/name
    """

    name: str = argument("A model, as its page in the hub is called.", metavar="ORG/NAME")

    def run(self) -> None:
        from tui_transformer.files import write_whole
        from tui_transformer.model.local_models import cache_folder

        name = self.name
        if not _NAME.fullmatch(name) or ".." in name or "--" in name:
            raise InputError(
                f"{name[:80]!r} cannot be the name of a model: write ORG/NAME, as its page in the hub is called"
            )
        if importlib.util.find_spec("huggingface_hub") is None:
            raise InputError("fetch needs the extra `fetch`, which is not installed: pip install huggingface_hub")
        with _explained(name):
            import huggingface_hub

            about = huggingface_hub.HfApi().model_info(name, files_metadata=True, timeout=SECONDS)
            told = {each.rfilename: each for each in about.siblings or ()}
            files = _wanted(name, {file: each.size or 0 for file, each in told.items()})
            if about.sha is None or not re.fullmatch(r"[0-9A-Za-z]+", about.sha):  # it becomes the name of a folder
                raise InputError(f"{name} has no commit that can be: it is empty, or what answered is not the hub")
            folder = cache_folder() / f"models--{name.replace('/', '--')}"
            _check_room(name, folder, [told[file] for file in files])
            for number, (file, size) in enumerate(files.items()):
                if not sys.stderr.isatty():  # on a terminal the library draws a bar
                    note(f"{number + 1} of {len(files)}  {file}  {readable(size)}")
                # With a commit for a revision the library names no branch, so nothing can be opened yet.
                try:
                    path = huggingface_hub.hf_hub_download(name, file, revision=about.sha, cache_dir=cache_folder())
                    _check_arrived(Path(path), told[file])
                except SystemExit as error:  # of a signal
                    note(f"{number} of {len(files)} files of {name} are in {folder}: the same command goes on")
                    raise typer.Exit(int(error.code or 0)) from None
        # What the cache opens is what this file names, so it is written last.
        (folder / "refs").mkdir(exist_ok=True)
        write_whole(folder / "refs" / "main", about.sha.encode())
        note(f"{name} is in {folder}: open it with tui-transformer --model {name}")


def _wanted(name: str, sizes: dict[str, int]) -> dict[str, int]:
    """The files to fetch, config.json last."""
    whole = any(_is_weights(file) and file.startswith("model") for file in sizes)
    chosen = [
        file
        for pattern in WANTED
        for file in sorted(sizes)
        if "/" not in file
        and fnmatchcase(file, pattern)
        and (not whole or "safetensors" not in file or file[:5] == "model")
    ]
    if CONFIG not in chosen:
        raise InputError(f"{name} has no {CONFIG}: it is no model that can be opened")
    if not any(map(_is_weights, chosen)):
        pickled = next((file for file in sizes if file.endswith((".bin", ".pt", ".pth", ".h5"))), None)
        other = f": {pickled} is not fetched, as pickled weights can run code" if pickled else ""
        raise InputError(f"{name} has no safetensors weights{other}")
    return {file: sizes[file] for file in chosen}


def _is_weights(file: str) -> bool:
    return file.endswith(".safetensors") and "/" not in file


def _check_room(name: str, folder: Path, files: list[RepoSibling]) -> None:
    """Refuse what has no room; an earlier download that did not come to its end may have left some files there."""
    named = ((each, each.lfs.sha256 if each.lfs is not None else each.blob_id) for each in files)
    missing = (each for each, blob in named if not blob or not (folder / "blobs" / blob).is_file())
    needed, place = sum(each.size or 0 for each in missing), next(each for each in folder.parents if each.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise InputError(
            f"{name} needs {readable(needed)} and {place} has {readable(free)} free: make room, or set HF_HOME"
        )


def _check_arrived(path: Path, told: RepoSibling) -> None:
    """Where the hub tells the digest of a file, one that came, or lay in the cache, otherwise is removed and refused.

    Of large files it tells the SHA-256; others are named by their object of git, if by their ETag as well.
    """
    blob = path.resolve()
    if told.lfs is not None:
        digest, expected = hashlib.sha256(), told.lfs.sha256
    elif told.blob_id == blob.name:
        digest, expected = hashlib.sha1(b"blob %d\0" % blob.stat().st_size, usedforsecurity=False), blob.name
    else:
        return
    with blob.open("rb") as file:
        found = hashlib.file_digest(file, lambda: digest).hexdigest()
    if found != expected:
        path.unlink()
        blob.unlink(missing_ok=True)
        kind = digest.name.upper().replace("SHA", "SHA-")
        raise InputError(
            f"{told.rfilename} did not arrive as the hub has it (its {kind} is {found[:12]}…, not {expected[:12]}…): "
            "it is removed: fetch again"
        )


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Everything that can go wrong on the way, as one line."""
    try:
        yield
    except (InputError, typer.Exit):
        raise
    except Exception as error:
        raise InputError(_reason(name, error)) from error


def _reason(name: str, error: Exception) -> str:
    from tui_transformer.model.local_models import cache_folder, find_model

    kinds = {kind.__name__ for kind in type(error).__mro__}
    known = next((text for kind, text in _REASONS.items() if kind in kinds), None)
    if known is not None:
        return known.format(name=name)
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return f"{cache_folder()}: the disk is full: make room, or set HF_HOME to a folder elsewhere, and fetch again"
    what = (str(error).splitlines() or [type(error).__name__])[0]
    setting = next((key for key in OFFLINE if os.environ.get(key, "").upper() in _YES), None)
    if setting is None and not kinds & _OF_THE_NETWORK:
        return f"{name} could not be fetched: {what[:200]}"
    why = f"{setting} is set" if setting else f"the hub cannot be reached: {what[:120]}"
    own = find_model(name)  # it may be here already
    here = f"; it is in the cache already: tui-transformer --model {name}" if own and own.source == "cache" else ""
    return f"{name} cannot be fetched: offline ({why}){here}"


_REASONS = {
    "GatedRepoError": "{name} is gated: ask for access on its page, log in with `hf auth login`, and fetch again",
    "RepositoryNotFoundError": "no model in the hub is called {name}, or it is private: check the name",
    "RemoteEntryNotFoundError": "{name} has changed while it was fetched: fetch it again",
    "HFValidationError": "{name} cannot be the name of a model: write ORG/NAME, as its page in the hub is called",
    "PermissionError": "the cache may not be written: set HF_HOME to a folder of yours",
    "NotADirectoryError": "the cache would lie in a file: set HF_HOME to a folder",
    "JSONDecodeError": "{name} cannot be fetched: what answered is not the hub: log in to the network first",
}
_OF_THE_NETWORK = frozenset(
    {"OfflineModeIsEnabled", "ConnectionError", "TransportError", "TimeoutError", "LocalEntryNotFoundError"}
)
