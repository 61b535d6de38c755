"""A run as a person writes it in a form, and the run that this gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.form import TEXT, Field
from tui_transformer.explorer.tools.runs.paths import path_of
from tui_transformer.files import is_file, make_folder, write_whole
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.run import Run, check_new, newest_checkpoint
from tui_transformer.learning.settings import UNITS, Settings, is_run, settings_of
from tui_transformer.learning.tasks import TASKS
from tui_transformer.model.word_vectors import NORMAL, STARTS, STARTS_SAID
from tui_transformer.text.files import shown_path

FILE = "a file"


@dataclass(frozen=True)
class Text:
    """A text to learn from, and what suits it.

    Attributes:
        about: What is learned, in a few words.
        lines: How many are made; 0 for a file of the user's.
        values: Of the form's fields.
    """

    about: str
    lines: int
    values: Mapping[str, str]


def _values(task: str, tokens: str, **sizes: str) -> Mapping[str, str]:
    usual = {
        "steps": "1000",
        "learning_rate": "0.003",
        "batch": "32",
        "length": "32",
        "dropout": "0",
        "embedding": NORMAL,
    }
    return {"task": task, "tokens": tokens, **usual, "layers": "1", "d_model": "64", "heads": "4", **sizes}


TEXTS: Mapping[str, Text] = {
    "dates": Text(
        "dates as people write them → as 2021-05-03", 5000, _values("pairs", "characters", steps="1500", length="40")
    ),
    "question": Text("is a line a question or a statement?", 4000, _values("classify", "words", d_model="32")),
    "story": Text("small stories, word by word", 4000, _values("next-word", "words", layers="2", length="48")),
    "copy": Text(
        "letters that are repeated: induction heads",
        8000,
        _values("next-word", "words", layers="2", length="64", steps="4000"),
    ),
    FILE: Text("lines of a file of yours", 0, _values("next-character", "characters", length="64", dropout="0.1")),
}


FIELDS = (
    Field(
        "folder",
        "run folder",
        "Where the run and its model are kept. A folder that holds a run is gone on from.",
        longest=TEXT,
    ),
    Field("text", "text", "What the model learns from.", tuple(TEXTS)),
    Field(
        "file", "  its path", "Lines of text; for pairs and classify with a tab between the two parts.", longest=TEXT
    ),
    Field("task", "task", "What the model predicts; it decides the architecture.", tuple(TASKS)),
    Field("tokens", "tokens", "What the vocabulary is built of.", UNITS),
    Field("steps", "steps", "Batches that are learned from."),
    Field("learning_rate", "learning rate", "How far a step goes, at most: it rises first and then falls."),
    Field("batch", "batch", "Examples of a step."),
    Field("length", "length", "Tokens of an example, at most."),
    Field("layers", "layers", "How often attention and feed-forward follow each other."),
    Field("d_model", "d_model", "Numbers in each token's vector; the heads share them equally."),
    Field("heads", "heads", "Attention heads in each layer; d_model is divisible by them."),
    Field("embedding", "embedding", STARTS_SAID, (NORMAL, *STARTS)),
    Field("dropout", "dropout", "Share of values that are dropped in a step, so that none is relied on."),
)
NUMBERS: Mapping[str, Callable[[str], float]] = {
    "steps": int,
    "learning_rate": float,
    "batch": int,
    "length": int,
    "layers": int,
    "d_model": int,
    "heads": int,
    "dropout": float,
}
"""How each number is read."""
OF_A_RUN = ("folder", "steps")
"""The fields of a run that is gone on from; the others are as they were."""
SIZES = ("layers", "d_model", "heads")


@dataclass(frozen=True)
class Plan:
    """A run that can be opened: what it is called, what it is, and the way to open it."""

    name: str
    about: str
    opened: Callable[[], Run] = field(repr=False)


@dataclass(frozen=True)
class SavedRun:
    """A run that a folder holds: its newest step, and its settings."""

    step: int
    settings: Settings


def saved_run(folder: str) -> SavedRun | None:
    """The run in a folder, None where there is none.

    Raises:
        InputError: Its file is damaged.
    """
    if not folder.strip() or not is_run(path := path_of(folder)):
        return None
    newest = newest_checkpoint(path)
    return SavedRun(0 if newest is None else int(newest.name), settings_of(path))


def plan(values: Mapping[str, str]) -> Plan:
    """The run of a form.

    Raises:
        InputError: A value that cannot be.
    """
    if not values["folder"].strip():
        raise InputError("the run folder is empty: name a folder")
    run = saved_run(values["folder"])
    return _new(values) if run is None else _resumed(values, run)


def _resumed(values: Mapping[str, str], run: SavedRun) -> Plan:
    folder, steps = path_of(values["folder"]), int(_read("steps", values["steps"]))
    if steps < run.step:
        raise InputError(f"steps {steps:,}: {run.step:,} are made already: write more")
    settings = run.settings
    about = f"{settings.task} on {Path(settings.file).name} · step {run.step:,} of {steps:,}"
    given = {"steps": steps} if steps != settings.steps else {}
    return Plan(folder.name, about, lambda: Run.resume(folder, given))


def _new(values: Mapping[str, str]) -> Plan:
    folder, text = path_of(values["folder"]), TEXTS[values["text"]]
    file = folder / f"{values['text']}.txt" if text.lines else _file(values["file"])
    settings = _settings(values, file)
    check_new(folder, str(file))

    def opened() -> Run:
        if text.lines:
            _write_text(folder, file, values["text"], text.lines)
        return Run.start(folder, settings)

    return Plan(folder.name, f"a new run in {shown_path(folder)} · {text.about}", opened)


def _file(text: str) -> Path:
    if not text.strip():
        raise InputError("the text's path is empty: give the path of a text file")
    path = path_of(text)
    if not is_file(path):
        raise InputError(f"{shown_path(path)} is no file: give the path of a text file")
    return path


def _settings(values: Mapping[str, str], file: Path) -> Settings:
    numbers: dict[str, Any] = {key: _read(key, values[key]) for key in NUMBERS if key not in SIZES}
    sizes = {key: _read(key, values[key]) for key in SIZES}
    warm_up = min(100, max(numbers["steps"] // 10, 1))
    words: dict[str, Any] = {"tokens": values["tokens"], "embedding": values["embedding"]}
    return Settings(values["task"], str(file), sizes=sizes, warm_up=warm_up, **words, **numbers)


def _read(key: str, text: str) -> float:
    read = NUMBERS[key]
    try:
        return read(text.strip().replace(",", "" if read is int else "."))
    except ValueError as error:
        kind = "a whole number" if read is int else "a number"
        raise InputError(f"{_LABELS[key]} {text!r} is not {kind}") from error


_LABELS = {each.key: each.label.strip() for each in FIELDS}

_CALLED = {"out": _LABELS["folder"]}
"""Options of the shell that are called something else here."""


def _write_text(folder: Path, file: Path, name: str, count: int) -> None:
    """A text made by the program's own rules, beside the run that learns from it."""
    make_folder(folder)
    write_whole(file, "".join(f"{line}\n" for line in lines_of(name, count)).encode())


def plain_names(message: str) -> str:
    """A message with the names of settings in place of the options of the shell: `--warm-up` → `warm up`.

    What visitors may open is no setting: `--files` is said as it is.
    """
    return re.sub(
        r"--(?!files\b)([a-z]+(?:-[a-z]+)*)", lambda match: _CALLED.get(match[1], match[1].replace("-", " ")), message
    )
