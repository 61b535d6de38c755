"""`exercise`: the list, files to begin with, checks, hints and solutions."""

from __future__ import annotations

import json
import math
import os
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import typer

from tui_transformer.cli.exercise_options import Begun, Checked, Named, Place
from tui_transformer.cli.output import emit, note
from tui_transformer.course.exercise import (
    Course,
    Exercise,
    Progress,
    open_course,
    progress_path,
    read_progress,
    write_progress,
)
from tui_transformer.course.processes import describe_limits
from tui_transformer.course.running import Limits
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_folder
from tui_transformer.report.table import aligned
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

WRONG = 1
RIGHTS = "an answer runs with all your rights: check only what you would run"
HELD = "limits hold for all its processes together"
WIDTH = 100
SHOWN = 20
"""Lines of what an answer printed that are shown."""


def show_list(place: Place) -> None:
    """Every exercise, and whether it is done."""
    course = _course(place)
    done = _progress(course).done
    rows = [
        (str(i), each.name, visible(each.title), "done" if each.name in done else "")
        for i, each in enumerate(course.exercises, 1)
    ]
    emit(aligned([("", "name", "exercise", ""), *rows]))
    count = sum(each.name in done for each in course.exercises)
    emit([f"{count} of {len(rows)} done; begin with: tui-transformer exercise next\n"])


def show_next(place: Place) -> None:
    """The first exercise that is not done, and how to begin."""
    course = _course(place)
    left = course.left(_progress(course).done)
    if left is None:
        emit(_ending(course))
        return
    number = course.exercises.index(left) + 1
    task = " ".join(left.task.split("\n\n")[0].split())
    emit([f"{number}  {left.name}: {visible(left.title)}\n{visible(task)}\n"])
    emit([f"begin with: tui-transformer exercise start {left.name}\n"])


def _ending(course: Course) -> Iterator[str]:
    yield f"all {len(course.exercises)} exercises are done\n"
    yield from _wrapped(course.end)


def _wrapped(text: str) -> Iterator[str]:
    for paragraph in filter(None, text.split("\n")):
        yield from ("\n", *(f"{line}\n" for line in textwrap.wrap(visible(paragraph), WIDTH, break_on_hyphens=False)))


def begin(request: Begun) -> None:
    """Write what a learner begins with."""
    from tui_transformer.course.start import start, start_files

    exercise = _course(request).find(request.name)
    path = request.out or Path(exercise.name if request.files else exercise.file)
    (start_files if request.files else start)(exercise, path)
    check = f"--command ./a.out, given {path}" if request.files else str(path)
    emit([f"wrote {visible(str(path))}\ncheck it: tui-transformer exercise check {exercise.name} {visible(check)}\n"])
    note(f"{RIGHTS}; {describe_limits() or HELD}")


def show_hint(request: Named) -> None:
    """The next hint; the last one again where all were seen."""
    course = _course(request)
    exercise, progress = course.find(request.name), _progress(course)
    if not exercise.hints:
        emit([f"{exercise.name} has no hints\n"])
        return
    number = min(progress.hints.get(exercise.name, 0) + 1, len(exercise.hints))
    emit([f"hint {number} of {len(exercise.hints)}: {visible(exercise.hints[number - 1])}\n"])
    _record(course, progress.with_hints(exercise.name, number))


def explore(request: Named) -> NoReturn:
    """Open the explorer on the model and the sentence of an exercise, at its step."""
    from tui_transformer.cli.terminal import check_terminal

    exercise = _course(request).find(request.name)
    check_terminal()
    from tui_transformer.course.sources import step_of
    from tui_transformer.explorer.run import run
    from tui_transformer.model.options import ModelOptions, Reading

    code = run(
        ModelOptions(model=exercise.model), Reading(exercise.text), stop=lambda program: step_of(exercise, program)
    )
    raise typer.Exit(code)


def show_solution(request: Named) -> None:
    """A right answer."""
    exercise = _course(request).find(request.name)
    try:
        text = exercise.solution.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{shown_path(exercise.solution)}: cannot be read: is it there?") from error
    emit([f"{visible(line)}\n" for line in text.splitlines()])


def run_check(checked: Checked) -> None:
    """Check one answer or all of a folder, and exit with 1 where one is wrong.

    Raises:
        UsageError: It is not said what is to be checked.
        InputError: A file cannot be read.
    """
    if checked.every and (checked.command or checked.file):
        raise UsageError("--all checks the files of a folder: leave out --command and the file")
    if not checked.every and checked.name is None:
        raise UsageError("name an exercise: `tui-transformer exercise check NAME`, or --all")
    right = (_all if checked.every else _one)(checked)
    if said := describe_limits():
        note(said)
    if not right:
        raise typer.Exit(WRONG)


def _course(place: Place) -> Course:
    return open_course(place.course, place.language)


def _progress(course: Course) -> Progress:
    return read_progress(progress_path(), course.name)


def _record(course: Course, progress: Progress) -> None:
    write_progress(progress_path(), course.name, progress)


def _one(checked: Checked) -> bool:
    from tui_transformer.course import check, check_command

    course = _course(checked)
    exercise = course.find(checked.name or "")
    if checked.command is not None:
        finding = check_command(exercise, _words(checked.command), _limits(checked))
    else:
        finding = check(exercise, _answer(exercise, checked.file), _limits(checked))
    if finding.passed:
        _record(course, _progress(course).with_done(exercise.name))
    if checked.json:
        emit([json.dumps(finding.to_json(), ensure_ascii=False, indent=2) + "\n"])
        return finding.passed
    emit(_printed(finding.printed))
    emit([f"{visible(finding.place)}\n" if finding.place else "", f"{visible(finding.says)}\n"])
    if finding.passed:
        emit(_done(course, exercise))
    else:
        command = "tui-transformer exercise"
        emit([f"a hint: {command} hint {exercise.name}; the right numbers: {command} open {exercise.name}\n"])
    return finding.passed


def _done(course: Course, exercise: Exercise) -> Iterator[str]:
    """What was learned, and what comes next."""
    done = _progress(course).done
    yield from _wrapped(exercise.learned)
    left = course.left(done, exercise.name)
    yield "\n"
    if left is None:
        yield from _ending(course)
        return
    count = sum(each.name in done for each in course.exercises)
    yield f"{count} of {len(course.exercises)} done. Next comes {left.name}: {visible(left.title)}\n"
    yield f"begin with: tui-transformer exercise start {left.name}\n"


def _all(checked: Checked) -> bool:
    """Every exercise, with the answer of its name in a folder."""
    from tui_transformer.course import Finding, check

    folder = Path(checked.name or ".")
    if not is_folder(folder):
        raise InputError(f"{shown_path(folder)}: no such folder: name the one with the answers")
    findings = []
    for each in _course(checked).exercises:
        if os.path.lexists(folder / each.file):
            try:
                findings.append(check(each, folder / each.file, _limits(checked)))
            except InputError as error:
                findings.append(Finding(each.name, passed=False, says=str(error)))
        else:
            findings.append(Finding(each.name, passed=False, says=f"{each.file} is not there"))
    if checked.json:
        emit([json.dumps([each.to_json() for each in findings], ensure_ascii=False, indent=2) + "\n"])
    else:
        rows = [
            (each.exercise, "right" if each.passed else "wrong", each.cause or "", visible(each.says))
            for each in findings
        ]
        emit(aligned(rows))
        emit([f"{sum(each.passed for each in findings)} of {len(findings)} right\n"])
    return all(each.passed for each in findings)


def _answer(exercise: Exercise, file: Path | None) -> Path:
    path = file or Path(exercise.file)
    if file is None and not path.exists():
        raise InputError(f"{path}: no such file: begin with `tui-transformer exercise start {exercise.name}`")
    return path


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command {command!r}: {error}") from error
    if not words:
        raise UsageError("--command is empty: name a program")
    return words


def _limits(checked: Checked) -> Limits:
    if not (math.isfinite(checked.seconds) and math.isfinite(checked.memory)):
        raise UsageError("--seconds and --memory are finite numbers")
    return Limits(checked.seconds, int(checked.memory * 2**30))


def _printed(text: str) -> Iterator[str]:
    """The last lines that an answer printed, as plain text."""
    lines = text.splitlines()
    if len(lines) > SHOWN:
        yield f"… {len(lines) - SHOWN} lines before these\n"
    yield from (f"| {visible(line)}\n" for line in lines[-SHOWN:])
