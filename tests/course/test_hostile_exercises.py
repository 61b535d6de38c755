"""Broken exercises: read, or refused in one line that names the file."""

from __future__ import annotations

from pathlib import Path

from hostile import COUNTS, damaged, hold, hold_file, read_or_refused
from hypothesis import strategies as st

from tui_transformer.course import open_course
from tui_transformer.course.exercise import read_exercise, read_progress
from tui_transformer.course.sources import Facts, printed_answers, text_of

WHOLE = (open_course().find("cross-entropy").folder / "about.toml").read_bytes()


@COUNTS
def test_broken_exercises(tmp_path, count):
    def read() -> None:
        exercise = read_exercise(tmp_path)
        assert exercise.inputs
        assert exercise.answers
        assert exercise.function.isidentifier()

    hold_file(count, tmp_path / "about.toml", damaged(WHOLE), read)


@COUNTS
def test_broken_progress(tmp_path, count):
    path = tmp_path / "course.json"
    progress = b'{"": {"done": ["scores"], "hints": {"mask": 2}}}'
    hold_file(count, path, damaged(progress), lambda: read_progress(path, ""))


@COUNTS
def test_broken_numbers_of_a_program(count):
    answers = Facts(open_course().find("query-key-value")).answers
    printed = "".join(f"{name}:\n{text_of(answer.value)}\n" for name, answer in answers.items())
    output = Path("the output")

    def check(text: str) -> None:
        values = read_or_refused(lambda: printed_answers(text, answers), output, *(Path(name) for name in answers))
        assert values is None or list(values) == list(answers)

    assert all((each.array == answers[name].value).all() for name, each in printed_answers(printed, answers).items())
    hold(count, check, text=st.one_of(damaged(printed.encode()).map(lambda data: data.decode(errors="replace"))))
