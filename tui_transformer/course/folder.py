"""A course: a folder of exercises, in the order of their names."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.course.exercise import ABOUT, ENGLISH, LARGEST, Exercise, paragraphs, read_exercise
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_file, read_toml
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

ABOUT_COURSE = "course.toml"
OWN = Path(__file__).parent / "exercises"


@dataclass(frozen=True)
class Course:
    """Exercises in order.

    Attributes:
        name: Under which progress is kept: "" of the own course, else the path of a teacher's.
        exercises: In order.
        end: What is said when all are done; "" where nothing is.
    """

    name: str
    exercises: tuple[Exercise, ...]
    end: str = ""

    def left(self, done: Collection[str], after: str = "") -> Exercise | None:
        """The next exercise that is not done, after one of a name where there is one; None where all are done."""
        names = [each.name for each in self.exercises]
        begin = names.index(after) + 1 if after in names else 0
        return next((each for each in self.exercises[begin:] + self.exercises[:begin] if each.name not in done), None)

    def find(self, name: str) -> Exercise:
        """The exercise of a name, or of a number from 1.

        Raises:
            UsageError: There is none.
        """
        if name.isdecimal() and 1 <= int(name) <= len(self.exercises):
            return self.exercises[int(name) - 1]
        exercise = next((each for each in self.exercises if each.name == name), None)
        if exercise is None:
            names = [each.name for each in self.exercises]
            near = difflib.get_close_matches(name, names, 1)
            guess = f"did you mean {near[0]}?" if near else f"use {', '.join(names)}"
            raise UsageError(f"no exercise is called {visible(name[:40])}: {visible(guess)}")
        return exercise


def open_course(folder: Path | None = None, language: str = ENGLISH) -> Course:
    """The course of a folder; the own one without.

    Raises:
        InputError: There is no exercise in it, or one is damaged, or two have one name.
    """
    place = OWN if folder is None else folder
    try:
        folders = sorted(each for each in place.iterdir() if is_file(each / ABOUT))
    except OSError as error:
        raise InputError(f"{shown_path(place)}: {error.strerror}: name a folder of exercises") from error
    if not folders:
        raise InputError(f"{shown_path(place)}: no folder in it has an {ABOUT}: an exercise is a folder with one")
    exercises = tuple(read_exercise(each, language) for each in folders)
    names = [each.name for each in exercises]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{shown_path(place)}: two exercises are called {visible(name)}: rename one folder")
    return Course("" if folder is None else str(folder.resolve()), exercises, _end(place, language))


def _end(place: Path, language: str) -> str:
    """The last words of a course, from `course.toml`; those of a translation from `course.LANGUAGE.toml`."""
    files = (place / f"course.{language}.toml", place / ABOUT_COURSE)
    file = next((each for each in files if is_file(each)), None)
    return "" if file is None else paragraphs(read_toml(file, LARGEST), "end", file)
