"""Recipes: the text and the settings by which the models that come with the program were trained.

`tui-transformer train --recipe NAME --out FOLDER` trains one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import read_json, read_toml, write_whole
from tui_transformer.learning.corpora import lines_of
from tui_transformer.model.local_models import ABOUT
from tui_transformer.records import dataclass

RUN = "run.json"
LARGEST = 1 << 20
AT_THE_FIRST = frozenset({"classify"})
"""Tasks whose only target is at the first token."""


@dataclass(frozen=True)
class Recipe:
    """How a model is made from so many lines of the text in `corpora` that has its name.

    `does` says in a few words what the model does; the settings are those of the run, by their names, without the file.
    """

    name: str
    does: str
    lines: int
    settings: Mapping[str, Any]

    @property
    def file(self) -> str:
        """The name of the file of its text."""
        return f"{self.name}.txt"

    def write_text(self, folder: Path) -> Path:
        """The text as a file of the folder; InputError where it cannot be written."""
        path = folder / self.file
        text = "".join(f"{line}\n" for line in lines_of(self.name, self.lines))
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
        return path


def recipe(name: str) -> Recipe:
    """A recipe by its name; UsageError where there is none."""
    if name not in _BY_NAME:
        raise UsageError(f"no recipe is called {name!r}: there are {', '.join(RECIPES)}")
    return _BY_NAME[name]


def recipe_of(folder: Path | None) -> Recipe | None:
    """The recipe of a model that comes with the program; None of any other."""
    known = folder is not None and folder.name in RECIPES and (folder / ABOUT).is_file()
    return recipe(folder.name) if folder is not None and known else None


def answers_first(folder: Path | None) -> bool:
    """True if the model of a folder was trained to answer at its first token alone; False where nothing says so.

    The task is that of a run, of a checkpoint of one, or of a model that comes with the program.
    """
    if folder is None:
        return False
    if own := recipe_of(folder):
        return own.settings["task"] in AT_THE_FIRST
    path = next((place / RUN for place in (folder, folder.parent.parent) if (place / RUN).is_file()), None)
    try:
        settings = None if path is None else read_json(path, LARGEST).get("settings")
    except (InputError, OSError):
        return False
    return isinstance(settings, dict) and str(settings.get("task", "")) in AT_THE_FIRST


_BY_NAME = {
    name: Recipe(name, **words) for name, words in read_toml(Path(__file__).with_suffix(".toml"), LARGEST).items()
}
RECIPES = tuple(_BY_NAME)
"""The names."""
