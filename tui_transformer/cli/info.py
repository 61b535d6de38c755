"""`info`: versions, the device in use and why, and what the machine and the terminal offer."""

from __future__ import annotations

import json
import os
import sys

from tui_transformer.cli.output import emit
from tui_transformer.cli.terminal import NUMBERS
from tui_transformer.crash import versions
from tui_transformer.engine.backend import Backend, choose_backend, find_gpu
from tui_transformer.engine.parts import available_memory, readable
from tui_transformer.text.dispatch import load_vocabulary
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import built_in_vocabularies


def run(device: str, *, as_json: bool) -> None:
    """Print everything, one line a thing, or as one JSON object."""
    facts = versions() | _device(device) | _machine() | _terminal() | _vocabularies()
    if as_json:
        emit([json.dumps(facts, ensure_ascii=False, indent=1) + "\n"])
    else:
        width = max(map(len, facts))
        emit(f"{name:<{width}}  {visible(value)}\n" for name, value in facts.items())


def _device(device: str) -> dict[str, str]:
    backend = choose_backend(device, small=device == "auto")
    return {"device": f"{backend.device} ({backend.name})", "why": backend.reason, "other": _other(backend)}


def _other(backend: Backend) -> str:
    """Why not the other device, or that it could be had."""
    if backend.device == "gpu":
        return "cpu can be had: --device cpu"
    gpu = find_gpu()
    return f"gpu can be had: {gpu.finding}: --device gpu" if gpu.cupy is not None else f"no gpu: {gpu.finding}"


def _machine() -> dict[str, str]:
    return {"blas": _blas(), "threads": _threads(), "memory": f"{readable(available_memory())} free"}


def _blas() -> str:
    """The library that computes matrix products, as NumPy says."""
    import numpy as np

    try:
        library = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{library['name']} {library['version']}"
    except (KeyError, TypeError):
        return "not known"


def _threads() -> str:
    limits = [f"{name}={value}" for name in NUMBERS if (value := os.environ.get(name))]
    return ", ".join([str(_processors()), *limits])


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _terminal() -> dict[str, str]:
    kind = os.environ.get("TERM", "not set")
    place = "a terminal" if sys.stdout.isatty() else "not a terminal"
    return {"terminal": f"{kind}, {place}", "colours": _colours(kind)}


def _colours(kind: str) -> str:
    """Abilities of the terminal, as it tells them."""
    if "NO_COLOR" in os.environ:
        return "none: NO_COLOR is set"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "24 bit: COLORTERM says so"
    if "256color" in kind:
        return "256: TERM says so"
    return "none: TERM says so" if kind in ("dumb", "not set") else "16"


def _vocabularies() -> dict[str, str]:
    names = built_in_vocabularies()
    folder = load_vocabulary(names[0]).path if names else None
    return {"vocabularies": f"{', '.join(names)} in {folder.parent if folder else 'no folder'}"}
