"""Exercises that a learner has done, and hints that were seen: a file in the user's data folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import own_folders, read_json, write_whole
from tui_transformer.text.files import shown_path

FILE = "course.json"
LARGEST = 1 << 20


@dataclass(frozen=True)
class Progress:
    """Progress in one course.

    Attributes:
        done: Exercises that were passed.
        hints: How many hints of an exercise were seen.
    """

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
    """The courses of the file by name."""
    if not path.exists():
        return {}
    raw = read_json(path, LARGEST)
    if not all(isinstance(each, dict) for each in raw.values()):
        raise _damaged(path)
    return raw


def _damaged(path: Path) -> InputError:
    return InputError(f"{shown_path(path)}: does not hold progress: remove it to begin anew")
