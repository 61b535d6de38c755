"""An exercise: a folder with `about.toml` (text, inputs, answers), `solution.py` and `mistakes.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import is_file, read_toml
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

ABOUT = "about.toml"
ENGLISH = "en"
LARGEST = 1 << 20

Source = Any
"""An input or an answer, as `sources.py` reads it: the name of a step, a number, a table."""


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people give.

    Attributes:
        cause: Its public name, as `scale-d_model`.
        says: What to mend; "" where a diagnosis says it.
    """

    cause: str
    says: str = ""


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
        mistakes: Functions of `mistakes.py`, and the causes that are to be named.
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
    mistakes: Mapping[str, Mistake]

    @property
    def file(self) -> str:
        """The name of the learner's file."""
        return f"{self.name.replace('-', '_')}.py"

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
    return Exercise(
        folder,
        _name(folder),
        title=_text(said, "title", path),
        task=_text(said, "task", path),
        function=_text(said, "function", path),
        model=_text(said, "model", path),
        text=_text(said, "text", path),
        inputs=_table(said, "inputs", path),
        answers=_table(said, "answers", path),
        predicts=str(said.get("predicts", "")),
        hints=_hints(said, path),
        learned=paragraphs(said, "learned", path),
        mistakes={name: _mistake(each, name, path) for name, each in _table(said, "mistakes", path, {}).items()},
    )


def _words(path: Path, english: Mapping[str, Any]) -> dict[str, Any]:
    """The parts that a translation may have: texts, and the messages of mistakes."""
    raw = read_toml(path, LARGEST)
    words: dict[str, Any] = {key: raw[key] for key in ("title", "task", "hints", "learned") if key in raw}
    says, mistakes = raw.get("mistakes", {}), english.get("mistakes", {})
    if not isinstance(says, dict) or not isinstance(mistakes, dict):
        return words
    translated = {
        name: each | {"says": says[name]} if isinstance(each, dict) and isinstance(says.get(name), str) else each
        for name, each in mistakes.items()
    }
    return words | {"mistakes": translated}


def _name(folder: Path) -> str:
    return re.sub(r"^\d+[-_. ]*", "", folder.name) or folder.name


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


def _hints(raw: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    value = raw.get("hints", [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{shown_path(path)}: hints is a list of texts")
    return tuple(" ".join(each.split()) for each in value)


def _mistake(raw: Any, name: str, path: Path) -> Mistake:
    if isinstance(raw, str):
        return Mistake(raw)
    if isinstance(raw, dict) and isinstance(raw.get("cause"), str) and isinstance(raw.get("says", ""), str):
        return Mistake(raw["cause"], " ".join(raw.get("says", "").split()))
    raise InputError(f"{shown_path(path)}: {visible(name)} in [mistakes] is the name of a cause, or cause and says")
