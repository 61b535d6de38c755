"""Broken exercises: read, or refused in one line that names the file."""

from __future__ import annotations

from hostile import COUNTS, damaged, hold, read_or_refused

from tui_transformer.course import open_course
from tui_transformer.course.exercise import read_exercise
from tui_transformer.course.progress import read_progress

WHOLE = (open_course().find("cross-entropy").folder / "about.toml").read_bytes()
PROGRESS = b'{"": {"done": ["scores"], "hints": {"mask": 2}}}'


@COUNTS
def test_broken_exercises(tmp_path, count):
    path = tmp_path / "about.toml"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        exercise = read_or_refused(lambda: read_exercise(tmp_path), path)
        assert exercise is None or (exercise.inputs and exercise.answers and exercise.function.isidentifier())

    hold(count, check, data=damaged(WHOLE))


@COUNTS
def test_broken_progress(tmp_path, count):
    path = tmp_path / "course.json"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        read_or_refused(lambda: read_progress(path, ""), path)

    hold(count, check, data=damaged(PROGRESS))
