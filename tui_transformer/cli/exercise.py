"""`exercise`: the list, files to begin with, checks, hints and solutions."""

from __future__ import annotations

import math
import os
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from tui_transformer.cli.output import emit, emit_json, note
from tui_transformer.cli.terminal import check_terminal
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.course import exercise as courses
    from tui_transformer.course.running import Limits

WRONG = 1
WIDTH = 100
MOST = 1_000_000
"""Seconds, and GiB, that an answer is given: a system waits no longer, and counts no more."""
SHOWN = 20
"""Lines of what an answer printed that are shown."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Which course, in which language."""

    course: Path | None = option(None, "A teacher's own exercises, a folder each.", metavar="FOLDER")
    language: str = option("en", "Of the texts, where they are translated.", metavar="CODE")

    def opened(self) -> courses.Course:
        from tui_transformer.course.exercise import open_course

        return open_course(self.course, self.language)


@dataclass(frozen=True, kw_only=True)
class Named(Place):
    """Which exercise."""

    name: str = argument("An exercise: its name or its number.", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class List(Place):
    """List the exercises, and which are done.

    Example: tui-transformer exercise list
    """

    def run(self) -> None:
        from tui_transformer.report.numbers import aligned

        course = self.opened()
        done = _progress(course).done
        rows = [
            (str(i), each.name, visible(each.title), "done" if each.name in done else "")
            for i, each in enumerate(course.exercises, 1)
        ]
        emit(aligned([("", "name", "exercise", ""), *rows]))
        count = sum(each.name in done for each in course.exercises)
        emit([f"{count} of {len(rows)} done; begin with: tui-transformer exercise next\n"])


@dataclass(frozen=True, kw_only=True)
class Start(Named):
    """Write a file to begin with: the task, the shapes and the signature. No file is written over.

    Example: tui-transformer exercise start scores
    """

    files: bool = flag("The task and the inputs as text files, for any language.")
    out: Path | None = option(None, "The file, or with --files the folder, to write.", "--out", "-o", metavar="FILE")

    def run(self) -> None:
        from tui_transformer.course.processes import describe_limits
        from tui_transformer.course.sources import start, start_files

        exercise = self.opened().find(self.name)
        path = self.out or Path(exercise.name if self.files else exercise.file)
        (start_files if self.files else start)(exercise, path)
        check = visible(f"--command ./a.out, given {path}" if self.files else str(path))
        emit([f"wrote {visible(str(path))}\ncheck it: tui-transformer exercise check {exercise.name} {check}\n"])
        limits = describe_limits() or "limits hold for all its processes together"
        note(f"an answer runs with all your rights: check only what you would run; {limits}")


@dataclass(frozen=True, kw_only=True)
class Open(Named):
    """Open the explorer at the step that an exercise is about: every number of the right answer.

    Example: tui-transformer exercise open scores
    """

    def run(self) -> None:
        exercise = self.opened().find(self.name)
        check_terminal()
        from tui_transformer.course.sources import step_of
        from tui_transformer.explorer.run import run
        from tui_transformer.model.options import ModelOptions, Reading

        model, reading = ModelOptions(model=exercise.model), Reading(exercise.text)
        raise typer.Exit(run(model, reading, stop=lambda program: step_of(exercise, program)))


@dataclass(frozen=True, kw_only=True)
class Check(Place):
    """Run an answer in processes of its own, compare it, and explain what is wrong with it.

    An answer runs with all your rights: check only what you would run yourself. What it may take is limited (time,
    memory, disk, output, processes): of all its processes together where systemd-run makes a cgroup, else of each
    alone. It gets an empty home and a small environment, and what it leaves running is ended.

    Example: tui-transformer exercise check scores
    """

    name: str | None = argument("An exercise; with --all, a folder of answers.", default=None, metavar="NAME")
    file: Path | None = argument("The answer, by default the file that start writes.", default=None, metavar="FILE")
    command: str | None = option(
        None, "A program instead, run where you are: it is given a folder of text files.", metavar="COMMAND"
    )
    every: bool = flag("Every answer of a folder; nothing is recorded.", "--all")
    json: bool = flag("Write JSON.")
    seconds: float = option(10.0, "How long an answer may take.", min=0.1)
    memory: float = option(2.0, "GiB that an answer may take.", min=0.1)

    def run(self) -> None:
        from tui_transformer.course.processes import describe_limits

        if self.every and (self.command or self.file):
            raise UsageError("--all checks the files of a folder: leave out --command and the file")
        if not self.every and self.name is None:
            raise UsageError("name an exercise: `tui-transformer exercise check NAME`, or --all")
        right = self._all() if self.every else self._one()
        if said := describe_limits():
            note(said)
        if not right:
            raise typer.Exit(WRONG)

    def _one(self) -> bool:
        from tui_transformer.course import check, check_command

        course = self.opened()
        exercise = course.find(self.name or "")
        if self.command is not None:
            try:
                words = shlex.split(self.command)
            except ValueError as error:
                raise UsageError(f"--command {self.command!r}: {error}") from error
            if not words:
                raise UsageError("--command is empty: name a program")
            finding = check_command(exercise, words, self._limits())
        else:
            path = self.file or exercise.answer(Path())
            if self.file is None and not path.exists():
                raise InputError(f"{path}: no such file: begin with `tui-transformer exercise start {exercise.name}`")
            finding = check(exercise, path, self._limits())
        if finding.passed:
            _record(course, _progress(course).with_done(exercise.name))
        if self.json:
            emit_json(finding.to_json(), 2)
            return finding.passed
        lines = finding.printed.splitlines()
        emit([f"… {len(lines) - SHOWN} lines before these\n"] if len(lines) > SHOWN else [])
        emit(f"| {visible(line)}\n" for line in lines[-SHOWN:])
        emit([f"{visible(finding.place)}\n" if finding.place else "", f"{visible(finding.says)}\n"])
        if finding.passed:
            emit(_done(course, exercise))
        else:
            command = "tui-transformer exercise"
            emit([f"a hint: {command} hint {exercise.name}; the right numbers: {command} open {exercise.name}\n"])
        return finding.passed

    def _all(self) -> bool:
        """Every exercise, with the answer of its name in a folder."""
        from tui_transformer.course import Finding, check
        from tui_transformer.files import is_folder
        from tui_transformer.report.numbers import aligned
        from tui_transformer.text.files import shown_path

        folder = Path(self.name or ".")
        if not is_folder(folder):
            raise InputError(f"{shown_path(folder)}: no such folder: name the one with the answers")
        findings = []
        for each in self.opened().exercises:
            if os.path.lexists(path := each.answer(folder)):
                try:
                    findings.append(check(each, path, self._limits()))
                except InputError as error:
                    findings.append(Finding(each.name, passed=False, says=str(error)))
            else:
                findings.append(Finding(each.name, passed=False, says=f"{each.file} is not there"))
        right = [each.passed for each in findings]
        if self.json:
            emit_json([each.to_json() for each in findings], 2)
        else:
            verdicts = ("right" if passed else "wrong" for passed in right)
            rows = zip(findings, verdicts, strict=True)
            emit(aligned([(each.exercise, said, each.cause or "", visible(each.says)) for each, said in rows]))
            emit([f"{sum(right)} of {len(right)} right\n"])
        return all(right)

    def _limits(self) -> Limits:
        from tui_transformer.course.running import Limits

        if not (math.isfinite(self.seconds) and math.isfinite(self.memory)):
            raise UsageError("--seconds and --memory are finite numbers")
        if max(self.seconds, self.memory) > MOST:
            raise UsageError(f"--seconds and --memory are at most {MOST:,}: no system keeps to more")
        return Limits(self.seconds, int(self.memory * 2**30))


@dataclass(frozen=True, kw_only=True)
class Hint(Named):
    """Show the next hint; there are three, each says more.

    Example: tui-transformer exercise hint scores
    """

    def run(self) -> None:
        course = self.opened()
        exercise, progress = course.find(self.name), _progress(course)
        if not exercise.hints:
            emit([f"{exercise.name} has no hints\n"])
            return
        number = min(progress.hints.get(exercise.name, 0) + 1, len(exercise.hints))
        emit([f"hint {number} of {len(exercise.hints)}: {visible(exercise.hints[number - 1])}\n"])
        _record(course, progress.with_hints(exercise.name, number))


@dataclass(frozen=True, kw_only=True)
class Solution(Named):
    """Show a right answer.

    Example: tui-transformer exercise solution scores
    """

    def run(self) -> None:
        from tui_transformer.text.files import shown_path

        path = self.opened().find(self.name).solution
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{shown_path(path)}: cannot be read: is it there?") from error
        emit([f"{visible(line)}\n" for line in text.splitlines()])


@dataclass(frozen=True, kw_only=True)
class Next(Place):
    """Show the first exercise that is not done.

    Example: tui-transformer exercise next
    """

    def run(self) -> None:
        course = self.opened()
        left = course.left(_progress(course).done)
        if left is None:
            emit(_ending(course))
            return
        number = course.exercises.index(left) + 1
        task = " ".join(left.task.split("\n\n")[0].split())
        emit([f"{number}  {left.name}: {visible(left.title)}\n{visible(task)}\n"])
        emit([f"begin with: tui-transformer exercise start {left.name}\n"])


@dataclass(frozen=True, kw_only=True)
class Exercise(List):
    """Learn by writing a transformer step by step: each answer is checked, and what is wrong is explained.

    Without a command, the exercises are listed. Exit code 0: right; 1: wrong. `check` runs an answer with all your
    rights, within limits of time, memory, disk, output and processes.

    Example: tui-transformer exercise
    """

    commands: ClassVar[Mapping[str, type]] = {
        "list": List,
        "start": Start,
        "open": Open,
        "check": Check,
        "hint": Hint,
        "solution": Solution,
        "next": Next,
    }

    def before(self, command: str) -> None:
        if self != Exercise():
            raise UsageError(f"--course and --language belong after the command: exercise {command} …")


# What a learner has done


def _progress(course: courses.Course) -> courses.Progress:
    from tui_transformer.course.exercise import progress_path, read_progress

    return read_progress(progress_path(), course.name)


def _record(course: courses.Course, progress: courses.Progress) -> None:
    from tui_transformer.course.exercise import progress_path, write_progress

    write_progress(progress_path(), course.name, progress)


def _done(course: courses.Course, exercise: courses.Exercise) -> Iterator[str]:
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


def _ending(course: courses.Course) -> Iterator[str]:
    yield f"all {len(course.exercises)} exercises are done\n"
    yield from _wrapped(course.end)


def _wrapped(text: str) -> Iterator[str]:
    for paragraph in filter(None, text.split("\n")):
        yield from ("\n", *(f"{line}\n" for line in textwrap.wrap(visible(paragraph), WIDTH, break_on_hyphens=False)))
