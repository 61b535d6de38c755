"""Answers to exercises, of which many run one after another in a process."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tui_transformer.course import Exercise, Finding, check, checking, open_course
from tui_transformer.course.running import Limits, Ran, run_python
from tui_transformer.course.sources import Facts

COURSE = open_course()
PATIENT = Limits(seconds=200.0)
_ran: dict[Path, Ran] = {}


def once(file: Path, *given: Any) -> Ran:
    """A file is run once, and not again for each of its functions."""
    if file not in _ran:
        _ran[file] = run_python(file, *given)
    return _ran[file]


def checked(exercise: Exercise, file: Path, *functions: str) -> list[Finding]:
    """What is said of functions of a file."""
    facts = Facts(exercise)
    _ran[file] = run_python(file, functions, facts.inputs, list(facts.answers), PATIENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "run_python", once)
        return [check(exercise, file, PATIENT, function=each) for each in functions]


def told(name: str, folder: Path, *bodies: str, head: str = "import re\nimport numpy as np\n") -> list[Finding]:
    """What is said of answers to an exercise, each of which begins on the first of a hundred lines: 01."""
    exercise, text = COURSE.find(name), head
    functions = [f"answer_{number}" for number in range(len(bodies))]
    for number, (function, body) in enumerate(zip(functions, bodies, strict=True), 1):
        text += "\n" * (100 * number - text.count("\n") - 1)
        text += f"def {function}({', '.join(exercise.inputs)}):\n{textwrap.indent(body, '    ')}\n"
    file = folder / exercise.file
    file.write_text(text, encoding="utf-8")
    findings = checked(exercise, file, *functions)
    return [replace(each, says=re.sub(r"line \d+(\d\d): ", r"line \1: ", each.says)) for each in findings]
