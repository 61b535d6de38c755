"""An answer beside the right one: one clear message about whatever is wrong with it, and the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.course.exercise import Exercise
from tui_transformer.course.running import Limits, run_command, run_python
from tui_transformer.course.sources import Answer, Facts
from tui_transformer.course.text_files import printed_answers
from tui_transformer.diagnosis.comparison import Difference, compare, tolerance_of
from tui_transformer.diagnosis.diagnose import judge
from tui_transformer.diagnosis.diagnosis import First
from tui_transformer.diagnosis.dumps.dump import Values
from tui_transformer.diagnosis.dumps.precision import FLOAT64, stored_precision
from tui_transformer.diagnosis.matching import Entry
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular, is_file

USUAL = Limits()


@dataclass(frozen=True)
class Finding:
    """Result of a check.

    Attributes:
        exercise: Its name.
        passed: Every answer agrees as far as rounding goes.
        says: One or two sentences.
        cause: The public name of the mistake; None where none is known.
        place: The cell that is farthest off, with both values; "" where there is none.
        printed: What the learner's code printed.
    """

    exercise: str
    passed: bool
    says: str
    cause: str | None = None
    place: str = ""
    printed: str = ""

    def to_json(self) -> dict[str, Any]:
        """As `exercise check --json` writes it."""
        return {"exercise": self.exercise, "passed": self.passed, "cause": self.cause, "says": self.says}


def check(exercise: Exercise, file: Path, limits: Limits = USUAL, function: str | None = None) -> Finding:
    """Run a learner's function, and say what is wrong with what it returns.

    Args:
        exercise: Which.
        file: The learner's.
        limits: What it may take.
        function: Another function of the file.

    Raises:
        InputError: The file cannot be read, or the exercise is damaged.
    """
    check_regular(file)
    facts, name = Facts(exercise), function or exercise.function
    ran = run_python(file, [name], facts.inputs, list(facts.answers), limits)
    why, printed = ran.why(name), ran.printed + ran.errors
    if why is not None:
        return Finding(exercise.name, passed=False, says=f"{file.name}: {why}", printed=printed)
    arrays = zip(facts.answers, ran.arrays[name], strict=True)
    return _judged(
        facts, {name: Values(array, stored_precision(array.dtype)) for name, array in arrays}, printed, limits
    )


def check_command(exercise: Exercise, command: Sequence[str], limits: Limits = USUAL) -> Finding:
    """Run a learner's program, and say what is wrong with the numbers that it prints."""
    facts = Facts(exercise)
    ran = run_command(command, facts.inputs, limits)
    why = ran.failed.get("")
    if why is not None:
        return Finding(exercise.name, passed=False, says=f"{command[0]}: {why}", printed=ran.errors)
    try:
        answers = printed_answers(ran.printed, facts.answers)
    except InputError as error:
        return Finding(exercise.name, passed=False, says=f"{command[0]}: {error}", printed=ran.printed + ran.errors)
    return _judged(facts, answers, ran.errors, limits)


def _judged(facts: Facts, theirs: Mapping[str, Values], printed: str, limits: Limits) -> Finding:
    name = facts.exercise.name
    for answer, values in theirs.items():
        wrong = _unusable(answer, values, facts.answers[answer])
        if wrong:
            return Finding(name, passed=False, says=wrong, printed=printed)
    differences = {each: _difference(values, facts.answers[each]) for each, values in theirs.items()}
    first = next((each for each, difference in differences.items() if difference.beyond), None)
    if first is None:
        relative = max(difference.relative for difference in differences.values())
        agrees = "exactly" if relative == 0 else f"to {relative:.0e}"
        return Finding(name, passed=True, says=f"{', '.join(theirs)}: right, agrees {agrees}", printed=printed)
    cause, says = _explained(facts, theirs, first, differences[first], limits)
    return Finding(name, False, says, cause, _place(first, differences[first]), printed)  # noqa: FBT003


def _unusable(name: str, values: Values, right: Answer) -> str:
    """The reason why numbers cannot be compared; "" where they can be."""
    shape, wanted = values.array.shape, right.value.shape
    if shape != wanted:
        axes = f" ({' × '.join(right.axes)})" if right.axes else ""
        return f"{name} has the shape {_shape(shape)}: it should be {_shape(wanted)}{axes}"
    missing = np.isnan(values.array)
    if missing.any():
        place = ", ".join(map(str, np.argwhere(missing)[0]))
        count = int(missing.sum())
        where = f"[{place}]" if place else ""
        return (
            f"{name}{where} is not a number (NaN){f', {count} cells are' if count > 1 else ''}: look for 0 ÷ 0 or ∞ − ∞"
        )
    return ""


def _shape(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _difference(values: Values, right: Answer) -> Difference:
    theirs = np.asarray(values.array, np.float64)
    limit = tolerance_of(values.precision, theirs, right.granted)
    return compare(theirs, right.value, None, limit, shares=False)


def _place(name: str, difference: Difference) -> str:
    theirs, ours = (f"{value:.6g}" for value in difference.values)
    index = f"[{', '.join(map(str, difference.index))}]" if difference.index else ""
    return f"{name}{index} is {theirs}, and should be {ours}"


def _explained(
    facts: Facts, theirs: Mapping[str, Values], name: str, difference: Difference, limits: Limits
) -> tuple[str | None, str]:
    """The cause and a sentence: by a diagnosis where the answers are steps, else by the exercise's own mistakes."""
    first = _diagnosed(facts, theirs)
    if first is not None and first.cause is not None:
        return first.cause, first.says
    known = _known(facts, theirs, limits)
    if known is not None:
        return known
    if first is not None:
        return None, first.says
    return None, f"{name} differs (relative {difference.relative:.2g}). No known mistake explains it."


def _diagnosed(facts: Facts, theirs: Mapping[str, Values]) -> First | None:
    """The first wrong step; None where the answers are no steps."""
    steps = {name: facts.step(facts.exercise.answers[name]) for name in theirs}
    if None in steps.values():
        return None
    entries = [
        Entry(step, name, np.asarray(given.value)[None], None, FLOAT64)
        for name, given in facts.inputs.items()
        if (step := facts.step(facts.exercise.inputs[name])) and not facts.right.program.by_name[step].op.integer
    ]
    entries += [
        Entry(step, name, np.asarray(theirs[name].array, np.float64)[None], None, theirs[name].precision)
        for name, step in steps.items()
        if step
    ]
    return judge(sorted(entries, key=lambda entry: facts.right.program.places[entry.step]), facts.right)[1]


def _known(facts: Facts, theirs: Mapping[str, Values], limits: Limits) -> tuple[str, str] | None:
    """The mistake of the exercise whose answer is the learner's."""
    exercise = facts.exercise
    if not exercise.mistakes or not is_file(exercise.wrong):
        return None
    ran = run_python(exercise.wrong, list(exercise.mistakes), facts.inputs, list(theirs), limits)
    for function, mistake in exercise.mistakes.items():
        if function not in ran.arrays or not mistake.says:
            continue
        pairs = zip(theirs.items(), ran.arrays[function], strict=True)
        if all(_same(values, array, facts.answers[name].granted) for (name, values), array in pairs):
            return mistake.cause, mistake.says
    return None


def _same(values: Values, other: Any, granted: float) -> bool:
    theirs = np.asarray(values.array, np.float64)
    if theirs.shape != other.shape:
        return False
    return not compare(theirs, other, None, tolerance_of(values.precision, theirs, granted), shares=False).beyond
