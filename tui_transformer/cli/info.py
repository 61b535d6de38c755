"""What there is: `info`, of the machine and the program, and `models`, what `--model` can name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tui_transformer.cli.options import Device
from tui_transformer.cli.output import emit, emit_json, note
from tui_transformer.cli.typer_layer import flag
from tui_transformer.errors import InputError
from tui_transformer.machine import THREADS
from tui_transformer.records import dataclass
from tui_transformer.text.display import cells, fit, visible

if TYPE_CHECKING:
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
        from tui_transformer.engine.backend import choose_backend, find_gpu
        from tui_transformer.machine import available_memory, readable
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
        yield "blas", _blas()
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        limits = (f"{name}={value}" for name in THREADS if (value := os.environ.get(name)))
        yield "threads", ", ".join([str(processors), *limits])
        yield "memory", f"{readable(available_memory())} free"
        kind = os.environ.get("TERM", "not set")
        yield "terminal", f"{kind}, {'a terminal' if sys.stdout.isatty() else 'not a terminal'}"
        yield "colours", _colours(kind)
        names = built_in_vocabularies()
        folder = load_vocabulary(names[0]).path if names else None
        yield "vocabularies", f"{', '.join(names)} in {folder.parent if folder else 'no folder'}"


def _blas() -> str:
    import numpy as np

    try:
        library = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{library['name']} {library['version']}"
    except (KeyError, TypeError):
        return "not known"


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

        listed = local_models()
        given = {"attention": "attention alone, of given Q, K and V"}
        rows = [(name, "built in", "", given.get(name, "random weights")) for name in BUILT_IN]
        rows += [(each.name, each.source, _size(each.folder), _about(each)) for each in listed]
        name, source, size = (max(cells(row[column]) for row in rows) for column in range(3))
        for row in rows:
            line = f"{fit(row[0], name)}  {fit(row[1], source)}  {fit(row[2], size, 'right')}  {visible(row[3])}"
            emit([line.rstrip() + "\n"])
        if not listed:
            note(f"no other model is in {visible(str(cache_folder()))} or in an installed package: name a folder")


def _size(folder: Path) -> str:
    from tui_transformer.machine import readable

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
