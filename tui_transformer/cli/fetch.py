"""`fetch`: a model from the hub of Hugging Face into its cache, from where `--model` opens it without a network."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase

from tui_transformer.cli.output import note
from tui_transformer.cli.typer_layer import argument
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass

TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocabulary.txt"),
    *("vocab.txt", "vocab.json", "target_vocab.json", "merges.txt", "*.spm", "spiece.model", "tokenizer.model"),
    "sentencepiece.bpe.model",
)
CONFIG = "config.json"
WANTED = (*TOKENIZER_FILES, "generation_config.json", "*.safetensors", "*.safetensors.index.json", CONFIG)
"""Files of a model that are fetched, in this order: those of folders in it, and pickled ones, are not."""

SECONDS = 20
"""To wait for an answer."""

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
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
        from tui_transformer.machine import readable
        from tui_transformer.model.local_models import cache_folder

        name = self.name
        if not _NAME.fullmatch(name) or ".." in name or "--" in name:
            raise InputError(
                f"{name[:80]!r} cannot be the name of a model: write ORG/NAME, as its page in the hub is called"
            )
        if importlib.util.find_spec("huggingface_hub") is None:
            raise InputError("fetch needs the extra `fetch`, which is not installed: pip install huggingface_hub")
        with _explained(name):
            commit, files = _look_up(name)
            folder = cache_folder() / f"models--{name.replace('/', '--')}"
            _check_room(name, sum(files.values()))
            for number, (file, size) in enumerate(files.items()):
                _download(name, file, commit, f"{number + 1} of {len(files)}  {file}  {readable(size)}")
        # What the cache opens is what this file names, so it is written last.
        (folder / "refs").mkdir(exist_ok=True)
        write_whole(folder / "refs" / "main", commit.encode())
        note(f"{name} is in {folder}: open it with tui-transformer --model {name}")


def _look_up(name: str) -> tuple[str, dict[str, int]]:
    """The newest commit of a model, and the files of it that are wanted, with their bytes."""
    from huggingface_hub import HfApi

    about = HfApi().model_info(name, files_metadata=True, timeout=SECONDS)
    files = _wanted(name, {each.rfilename: each.size or 0 for each in about.siblings or ()})
    if about.sha is None:
        raise InputError(f"{name} has no commit: it is empty")
    return about.sha, files


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


def _check_room(name: str, needed: int) -> None:
    from tui_transformer.machine import readable
    from tui_transformer.model.local_models import cache_folder

    folder = next(place for place in (cache_folder(), *cache_folder().parents) if place.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InputError(
            f"{name} needs {readable(needed)} and {folder} has {readable(free)} free: make room, or set HF_HOME"
        )


def _download(name: str, file: str, commit: str, line: str) -> None:
    """One file; the library draws a bar on standard error where that is a terminal."""
    from huggingface_hub import hf_hub_download

    from tui_transformer.model.local_models import cache_folder

    if not sys.stderr.isatty():
        note(line)
    # With a commit for a revision the library names no branch, so nothing can be opened yet.
    hf_hub_download(name, file, revision=commit, cache_dir=cache_folder())


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Everything that can go wrong on the way, as one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(_reason(name, error)) from error


def _reason(name: str, error: Exception) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    known = next((text for kind, text in _REASONS.items() if kind in kinds), None)
    if known is not None:
        return known.format(name=name)
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        from tui_transformer.model.local_models import cache_folder

        return f"{cache_folder()}: the disk is full: make room, or set HF_HOME to a folder elsewhere, and fetch again"
    if kinds & _OF_THE_NETWORK or any(os.environ.get(key) for key in OFFLINE):
        return _offline(name, error)
    what = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return f"{name} could not be fetched: {what}"


def _offline(name: str, error: Exception) -> str:
    """That there is no network or that it is switched off, and whether the model is here already."""
    from tui_transformer.model.local_models import find_model

    setting = next((key for key in OFFLINE if os.environ.get(key)), None)
    what = (str(error).splitlines() or [type(error).__name__])[0][:120]
    why = f"{setting} is set" if setting else f"the hub cannot be reached: {what}"
    own = find_model(name)
    here = f"; it is in the cache already: tui-transformer --model {name}" if own and own.source == "cache" else ""
    return f"{name} cannot be fetched: offline ({why}){here}"


_REASONS = {
    "GatedRepoError": "{name} is gated: ask for access on its page, log in with `hf auth login`, and fetch again",
    "RepositoryNotFoundError": "no model in the hub is called {name}, or it is private: check the name",
    "RemoteEntryNotFoundError": "{name} has changed while it was fetched: fetch it again",
    "HFValidationError": "{name} cannot be the name of a model: write ORG/NAME, as its page in the hub is called",
    "PermissionError": "the cache may not be written: set HF_HOME to a folder of yours",
}
_OF_THE_NETWORK = frozenset(
    {"OfflineModeIsEnabled", "ConnectionError", "TransportError", "TimeoutError", "LocalEntryNotFoundError"}
)
