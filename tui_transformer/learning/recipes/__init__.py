"""Recipes: the text and the settings by which the models that come with the program were trained. One file each.

`tui-transformer train --recipe NAME --out FOLDER` trains one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from tui_transformer.errors import UsageError
from tui_transformer.files import write_whole
from tui_transformer.learning.corpora import lines_of

RECIPES = ("copy", "dates", "question", "story")


@dataclass(frozen=True)
class Recipe:
    """How a model is made.

    Attributes:
        name: Of the model, and of the text in `corpora` that it learns from.
        does: What the model does, in a few words.
        lines: How many lines of the text.
        settings: Of the run, by their names, without the file.
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
        """The text as a file of the folder.

        Raises:
            InputError: It cannot be written.
        """
        path = folder / self.file
        text = "".join(f"{line}\n" for line in lines_of(self.name, self.lines))
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
        return path


def recipe(name: str) -> Recipe:
    """A recipe by its name.

    Raises:
        UsageError: There is none.
    """
    if name not in RECIPES:
        raise UsageError(f"no recipe is called {name!r}: there are {', '.join(RECIPES)}")
    return cast("Recipe", import_module(f"tui_transformer.learning.recipes.{name}").RECIPE)
