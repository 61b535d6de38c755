"""One walk of many, in a process of its own."""

from __future__ import annotations

import gc
import os
import tempfile

from tests.explorer.walks.models import MODELS
from tests.explorer.walks.walk import Outcome, moves_of, shortest, walk


def one(seed: int, model: str | None, moves: int, *, cut: bool) -> Outcome:
    """The walk of a seed; each model in turn, unless one is named."""
    name = model or [*MODELS][seed % len(MODELS)]
    outcome = walk(name, seed, moves_of(seed, moves))
    return shortest(outcome) if cut and outcome.faults else outcome


def plain() -> None:
    """A terminal with all colours, folders of the user that are empty, and few collections of garbage."""
    folder = tempfile.mkdtemp(prefix="walk")
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith("TEXTUAL_")]:
        del os.environ[name]
    homes = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "STATE", "CACHE", "DATA")}
    gc.set_threshold(50_000)  # every explorer leaves cycles: looking for them as often as usual takes a third
    os.environ.update(homes | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "HOME": folder})
