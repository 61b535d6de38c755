"""Every solution passes, and every classic mistake is named, as Python and as text."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tui_transformer.course import Exercise, check, check_command, open_course
from tui_transformer.course.start import start

EXERCISES = {exercise.name: exercise for exercise in open_course().exercises}
MISTAKES = [(name, function) for name, each in EXERCISES.items() for function in each.mistakes]

BY_TEXT = '''"""Reads the inputs of a folder as text, and prints what a function of a file returns."""
import sys
from pathlib import Path
import numpy as np

def read(path):
    if path.is_dir():
        return {each.stem: read(each) for each in path.iterdir()}
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.stem == "text":
        return lines[0]
    if path.stem == "words":
        return lines
    if len(lines) == 1:
        return int(lines[0]) if lines[0].isdigit() else float(lines[0])
    numbers = [float(each) for line in lines[1:] for each in line.split()]
    array = np.array(numbers).reshape([int(each) for each in lines[0].split()])
    return array.astype(int) if path.stem == "ids" else array

names = {}
exec(Path(sys.argv[1]).read_text(encoding="utf-8"), names)
inputs = {each.stem: read(each) for each in Path(sys.argv[-1]).iterdir()}
result = names[sys.argv[2]](**inputs)
answers = sys.argv[3].split(",")
for name, array in zip(answers, [result] if len(answers) == 1 else result):
    print(f"{name}:")
    array = np.asarray(array)
    for row in array.reshape(-1, array.shape[-1] if array.ndim else 1):
        print(*(f"{each:.6g}" for each in row))
'''


def command(folder: Path, exercise: Exercise, file: Path, function: str) -> list[str]:
    """A program that knows nothing of this one, and prints six digits as `cout` does."""
    program = folder / "program.py"
    program.write_text(BY_TEXT, encoding="utf-8")
    return [sys.executable, str(program), str(file), function, ",".join(exercise.answers)]


def test_there_are_fifteen() -> None:
    assert len(EXERCISES) == 15


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_is_right(name: str) -> None:
    verdict = check(EXERCISES[name], EXERCISES[name].solution)
    assert verdict.passed, verdict.says


@pytest.mark.parametrize(("name", "function"), MISTAKES)
def test_the_planted_mistake_is_named(name: str, function: str) -> None:
    exercise = EXERCISES[name]
    verdict = check(exercise, exercise.wrong, function=function)
    assert not verdict.passed
    assert verdict.cause == exercise.mistakes[function].cause, verdict.says
    assert "It matches" in verdict.says
    assert verdict.place


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_is_right_as_text_of_six_digits(tmp_path: Path, name: str) -> None:
    exercise = EXERCISES[name]
    verdict = check_command(exercise, command(tmp_path, exercise, exercise.solution, exercise.function))
    assert verdict.passed, (verdict.says, verdict.printed)


@pytest.mark.parametrize(("name", "function"), MISTAKES)
def test_the_planted_mistake_is_named_from_text_of_six_digits(tmp_path: Path, name: str, function: str) -> None:
    exercise = EXERCISES[name]
    verdict = check_command(exercise, command(tmp_path, exercise, exercise.wrong, function))
    assert not verdict.passed
    assert verdict.cause == exercise.mistakes[function].cause, verdict.says


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_has_three_hints_and_what_it_begins_with_is_python(tmp_path: Path, name: str) -> None:
    exercise = EXERCISES[name]
    assert len(exercise.hints) == 3
    start(exercise, tmp_path / exercise.file)
    tree = ast.parse((tmp_path / exercise.file).read_text(encoding="utf-8"))
    (function,) = (each for each in tree.body if isinstance(each, ast.FunctionDef))
    assert function.name == exercise.function
    assert [each.arg for each in function.args.args] == list(exercise.inputs)
    assert not check(exercise, tmp_path / exercise.file).passed
