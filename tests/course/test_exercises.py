"""Every solution passes, and every classic mistake is named, as Python and as text."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

import pytest
from answering import COURSE, PATIENT, checked, once

from tui_transformer.course import Exercise, Finding, check, checking
from tui_transformer.course.checking import judged
from tui_transformer.course.running import run_command
from tui_transformer.course.sources import Facts, printed_answers, start
from tui_transformer.diagnosis.dumps.dump import stored_values

EXERCISES = {exercise.name: exercise for exercise in COURSE.exercises}

BY_TEXT = '''"""Reads the inputs of a folder as text, and prints what functions of two files return."""
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

files = [Path(each) for each in sys.argv[1:3]]
sys.path.insert(0, str(files[0].parent))
names = [{}, {}]
for file, own in zip(files, names):
    exec(file.read_text(encoding="utf-8"), own)
answers = sys.argv[4].split(",")
for function in sys.argv[3].split(","):
    inputs = {each.stem: read(each) for each in Path(sys.argv[-1]).iterdir()}
    result = (names[0] | names[1])[function](**inputs)
    for name, array in zip(answers, [result] if len(answers) == 1 else result):
        print(f"{name}:")
        array = np.asarray(array)
        for row in array.reshape(-1, array.shape[-1] if array.ndim else 1):
            print(*(f"{each:.6g}" for each in row))
    print("END")
'''


def test_code_in_a_hint_is_written_as_it_is_typed() -> None:
    said = [text for each in EXERCISES.values() for text in (each.task, *each.hints)]
    assert not [text for text in said if "\\\\" in text]
    hint = EXERCISES["tokenize"].hints[-1]
    pattern = hint.partition('r"')[2].partition('"')[0]
    assert pattern in EXERCISES["tokenize"].solution.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_is_right(name: str) -> None:
    verdict = check(EXERCISES[name], EXERCISES[name].solution)
    assert verdict.passed, verdict.says


def named(exercise: Exercise, function: str, finding: Finding) -> str:
    """Nothing, or how a planted mistake is said otherwise than it should be."""
    mistake = exercise.mistakes[function]
    where = finding.place or any(each in finding.says for each in ("has the shape", "(NaN)", "token", "not exactly"))
    right = not finding.passed and finding.cause == mistake.cause and where and "It matches" in finding.says
    return "" if right else f"{function}: {finding.cause} for {mistake.cause}: {finding.says}"


FAILING = {
    (name, function)
    for name, each in EXERCISES.items()
    for function, mistake in each.mistakes.items()
    if mistake.says.startswith("It fails")
}
"""Mistakes that end in an error, which is said as such."""


@pytest.fixture
def mistakes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "run_python", once)


@pytest.mark.usefixtures("mistakes_once")
@pytest.mark.parametrize("name", EXERCISES)
def test_planted_mistakes_are_named(name: str) -> None:
    exercise, facts = EXERCISES[name], Facts(EXERCISES[name])
    functions = [each for each in exercise.mistakes if (name, each) not in FAILING]
    arrays = once(exercise.wrong, list(exercise.mistakes), facts.inputs, list(facts.answers), PATIENT).arrays
    answers = {each: dict(zip(facts.answers, map(stored_values, arrays[each]), strict=True)) for each in functions}
    findings = {each: judged(facts, theirs, "", PATIENT) for each, theirs in answers.items()}
    assert len(functions) >= 3
    assert "\n".join(filter(None, (named(exercise, each, findings[each]) for each in functions))) == ""


@pytest.mark.parametrize(("name", "function"), sorted(FAILING))
def test_a_mistake_that_ends_in_an_error_is_named(tmp_path: Path, name: str, function: str) -> None:
    """In a file of another name, on another line, written otherwise."""
    file = tmp_path / "mine.py"
    shutil.copy(EXERCISES[name].solution, tmp_path)
    file.write_text("\n\n" + EXERCISES[name].wrong.read_text(encoding="utf-8").replace(function, "mine"))
    (finding,) = checked(EXERCISES[name], file, "mine")
    assert finding.cause == EXERCISES[name].mistakes[function].cause, finding.says
    assert finding.says.startswith("mine.py: line ")
    assert finding.says.endswith(EXERCISES[name].mistakes[function].says)


@pytest.mark.usefixtures("mistakes_once")
@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_and_planted_mistakes_are_told_from_text_of_six_digits(tmp_path: Path, name: str) -> None:
    """By a program that knows nothing of this one, and prints as `cout` does: all but a mistake that this hides."""
    exercise, facts = EXERCISES[name], Facts(EXERCISES[name])
    functions = [each for each in exercise.mistakes if (name, each) not in FAILING and each != "no_epsilon"]
    program = tmp_path / "program.py"
    program.write_text(BY_TEXT, encoding="utf-8")
    command = [sys.executable, "-B", "-W", "ignore", str(program), str(exercise.wrong), str(exercise.solution)]
    given = ",".join([exercise.function, *functions]), ",".join(exercise.answers)
    ran = run_command([*command, *given], facts.inputs, PATIENT)
    printed = [printed_answers(text, facts.answers) for text in ran.printed.split("END\n")[:-1]]
    assert len(printed) == 1 + len(functions), ran.errors
    right, *findings = (judged(facts, theirs, "", PATIENT) for theirs in printed)
    assert right.passed, right.says
    told = (named(exercise, each, finding) for each, finding in zip(functions, findings, strict=True))
    assert "\n".join(filter(None, told)) == ""


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_has_three_hints_and_what_it_begins_with_is_python(tmp_path: Path, name: str) -> None:
    exercise = EXERCISES[name]
    assert len(exercise.hints) == 3
    start(exercise, tmp_path / exercise.file)
    tree = ast.parse((tmp_path / exercise.file).read_text(encoding="utf-8"))
    (function,) = (each for each in tree.body if isinstance(each, ast.FunctionDef))
    assert function.name == exercise.function
    assert [each.arg for each in function.args.args] == list(exercise.inputs)
    assert [ast.unparse(each) for each in function.body] == ["raise NotImplementedError"]
