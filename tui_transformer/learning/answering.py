"""Where a trained model answers: at every token, or, of one that tells lines apart, at the first alone."""

from __future__ import annotations

from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.files import read_json
from tui_transformer.learning.recipes import RECIPES, recipe
from tui_transformer.model.local_models import ABOUT

RUN = "run.json"
LARGEST = 1 << 20
AT_THE_FIRST = frozenset({"classify"})
"""Tasks whose only target is at the first token."""


def answers_first(folder: Path | None) -> bool:
    """Whether the model of a folder was trained to answer at its first token alone; False where nothing says so."""
    return folder is not None and _task(folder) in AT_THE_FIRST


def _task(folder: Path) -> str:
    """The task of a run, of a checkpoint of one, or of a model that comes with the program; "" where none is said."""
    if (folder / ABOUT).is_file() and folder.name in RECIPES:
        return str(recipe(folder.name).settings["task"])
    for place in (folder, folder.parent.parent):
        if (place / RUN).is_file():
            return _of_run(place / RUN)
    return ""


def _of_run(path: Path) -> str:
    try:
        settings = read_json(path, LARGEST).get("settings")
    except (InputError, OSError):
        return ""
    return str(settings.get("task", "")) if isinstance(settings, dict) else ""
