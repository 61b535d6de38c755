"""A course: exercises in the order of their folders, and what a learner has done of them."""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_file, own_folders, read_json, read_toml, write_whole
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

ABOUT = "about.toml"
ENGLISH = "en"
LARGEST = 1 << 20

Source = Any
"""An input or an answer, as `sources.py` reads it: the name of a step, a number, a table."""


class Why(NamedTuple):
    """What is said of a mistake, and its public name, as `scale-d_model`; None where none is known."""

    says: str
    cause: str | None = None


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        folder: Where it is.
        name: Its name on the command line: the folder's, without the number.
        title: A few words.
        task: What to do, in paragraphs.
        function: The learner's function.
        model: Whose numbers it is about.
        text: The sentence.
        inputs: What the function is given, by the name of its argument.
        answers: What it returns, in order.
        predicts: "next" where each position predicts the token after it, for losses and gradients.
        hints: Three, each saying more.
        learned: What one knows who has done it; "" where nothing is said.
        mistakes: By function of `mistakes.py`, what to mend, "" where a diagnosis says it, and what is to be named.
    """

    folder: Path
    name: str
    title: str
    task: str
    function: str
    model: str
    text: str
    inputs: Mapping[str, Source]
    answers: Mapping[str, Source]
    predicts: str
    hints: tuple[str, ...]
    learned: str
    mistakes: Mapping[str, Why]

    @property
    def file(self) -> str:
        """The name of the learner's file: none that Python would load in place of a module of its own."""
        plain = self.name.replace("-", "_")
        return f"{plain}_answer.py" if plain in sys.stdlib_module_names else f"{plain}.py"

    def answer(self, folder: Path) -> Path:
        """The learner's file in a folder; where only that is there, one with the exercise's bare name."""
        path, bare = folder / self.file, folder / f"{self.name.replace('-', '_')}.py"
        return bare if not os.path.lexists(path) and os.path.lexists(bare) else path

    @property
    def solution(self) -> Path:
        """A right answer."""
        return self.folder / "solution.py"

    @property
    def wrong(self) -> Path:
        """Wrong answers, a function each."""
        return self.folder / "mistakes.py"


def read_exercise(folder: Path, language: str = ENGLISH) -> Exercise:
    """The exercise of a folder; its words from `LANGUAGE.toml` beside `about.toml`, where that has them.

    Raises:
        InputError: A file is missing, damaged, or leaves out what is needed.
    """
    path = folder / ABOUT
    raw = read_toml(path, LARGEST)
    words = folder / f"{language}.toml"
    said = raw | (_words(words, raw) if language != ENGLISH and is_file(words) else {})
    hints = said.get("hints", [])
    if not isinstance(hints, list) or not all(isinstance(each, str) for each in hints):
        raise InputError(f"{shown_path(path)}: hints is a list of texts")
    return Exercise(
        folder,
        re.sub(r"^\d+[-_. ]*", "", folder.name) or folder.name,
        **{key: _text(said, key, path) for key in ("title", "task", "function", "model", "text")},
        inputs=_table(said, "inputs", path),
        answers=_table(said, "answers", path),
        predicts=str(said.get("predicts", "")),
        hints=tuple(" ".join(each.split()) for each in hints),
        learned=paragraphs(said, "learned", path),
        mistakes={name: _mistake(each, name, path) for name, each in _table(said, "mistakes", path, {}).items()},
    )


def _words(path: Path, english: Mapping[str, Any]) -> dict[str, Any]:
    """The parts that a translation may have: texts, and the messages of mistakes."""
    raw = read_toml(path, LARGEST)
    words: dict[str, Any] = {key: raw[key] for key in ("title", "task", "hints", "learned") if key in raw}
    says, mistakes = raw.get("mistakes", {}), english.get("mistakes", {})
    if isinstance(says, dict) and isinstance(mistakes, dict):
        words["mistakes"] = {
            name: each | {"says": says[name]} if isinstance(each, dict) and isinstance(says.get(name), str) else each
            for name, each in mistakes.items()
        }
    return words


def _text(raw: Mapping[str, Any], key: str, path: Path) -> str:
    value = raw.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{shown_path(path)}: {key} is missing: write {key} = a text in quotes")
    if key == "function" and not value.isidentifier():
        raise InputError(f"{shown_path(path)}: {visible(value)} cannot be the name of a function")
    return value.strip()


def paragraphs(raw: Mapping[str, Any], key: str, path: Path) -> str:
    """A text that may be left out, a line each paragraph.

    Raises:
        InputError: It is no text.
    """
    value = raw.get(key, "")
    if not isinstance(value, str):
        raise InputError(f"{shown_path(path)}: {key} is a text in quotes")
    return "\n".join(" ".join(each.split()) for each in value.strip().split("\n\n"))


def _table(raw: Mapping[str, Any], key: str, path: Path, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    value = raw.get(key, default)
    if not isinstance(value, dict) or (default is None and not value):
        raise InputError(f"{shown_path(path)}: [{key}] is missing: write lines name = what it is below it")
    for name in value:
        if not name.isidentifier():
            raise InputError(f"{shown_path(path)}: {visible(name)} in [{key}] cannot be a name in Python")
    return value


def _mistake(raw: Any, name: str, path: Path) -> Why:
    if isinstance(raw, str):
        return Why("", raw)
    if isinstance(raw, dict) and isinstance(raw.get("cause"), str) and isinstance(raw.get("says", ""), str):
        return Why(" ".join(raw.get("says", "").split()), raw["cause"])
    raise InputError(f"{shown_path(path)}: {visible(name)} in [mistakes] is the name of a cause, or cause and says")


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
    for name, count in Counter(each.name for each in exercises).items():
        if count > 1:
            raise InputError(f"{shown_path(place)}: two exercises are called {visible(name)}: rename one folder")
    last_words = [each for each in (place / f"course.{language}.toml", place / ABOUT_COURSE) if is_file(each)]
    end = paragraphs(read_toml(last_words[0], LARGEST), "end", last_words[0]) if last_words else ""
    return Course("" if folder is None else str(folder.resolve()), exercises, end)


FILE = "course.json"


@dataclass(frozen=True)
class Progress:
    """Progress in one course: the exercises that were passed, and how many hints of each were seen."""

    done: frozenset[str] = frozenset()
    hints: Mapping[str, int] = field(default_factory=dict)

    def with_done(self, name: str) -> Progress:
        """An exercise is passed."""
        return replace(self, done=self.done | {name})

    def with_hints(self, name: str, count: int) -> Progress:
        """So many hints of an exercise were seen."""
        return replace(self, hints={**self.hints, name: count})


def progress_path() -> Path:
    """Where it is kept."""
    return own_folders().user_data_path / FILE


def read_progress(path: Path, course: str) -> Progress:
    """Progress in a course; none where there is no file.

    Raises:
        InputError: The file is damaged.
    """
    raw = _courses(path).get(course, {})
    done, hints = raw.get("done", []), raw.get("hints", {})
    if not isinstance(done, list) or not isinstance(hints, dict):
        raise _damaged(path)
    return Progress(
        frozenset(name for name in done if isinstance(name, str)),
        {name: count for name, count in hints.items() if isinstance(count, int) and count >= 0},
    )


def write_progress(path: Path, course: str, progress: Progress) -> None:
    """Keep progress in a course beside that in others.

    Raises:
        InputError: The file is damaged or cannot be written.
    """
    courses = _courses(path) | {course: {"done": sorted(progress.done), "hints": dict(progress.hints)}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{shown_path(path.parent)}: cannot be made: {error.strerror}") from error
    write_whole(path, (json.dumps(courses, ensure_ascii=False, indent=2) + "\n").encode())


def _courses(path: Path) -> dict[str, dict[str, Any]]:
    raw = read_json(path, LARGEST) if path.exists() else {}
    if not all(isinstance(each, dict) for each in raw.values()):
        raise _damaged(path)
    return raw


def _damaged(path: Path) -> InputError:
    return InputError(f"{shown_path(path)}: does not hold progress: remove it to begin anew")
