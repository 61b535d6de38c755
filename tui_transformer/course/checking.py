"""An answer beside the right one: one clear message about whatever is wrong with it, and the cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_transformer.course.exercise import Exercise
from tui_transformer.course.explaining import Explained
from tui_transformer.course.running import Limits, run_command, run_python
from tui_transformer.course.sources import Facts
from tui_transformer.course.text_files import printed_answers
from tui_transformer.diagnosis.comparison import Difference
from tui_transformer.diagnosis.dumps.dump import Values
from tui_transformer.diagnosis.dumps.precision import stored_precision
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import spoken
from tui_transformer.errors import InputError
from tui_transformer.text.display import visible

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
        return {"exercise": self.exercise, "passed": self.passed, "cause": self.cause, "says": visible(self.says)}


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
    facts, name = Facts(exercise), function or exercise.function
    ran = run_python(file, [name], facts.inputs, list(facts.answers), limits)
    why, printed = ran.why(name), ran.printed + ran.errors
    if why is not None:
        known = None if ran.failed.get("") or ran.causes.get(name) else Explained(facts, {}, limits).failing(why)
        cause = known.cause if known else ran.causes.get(name)
        says = f"{file.name}: {known.says if known else why}"
        return Finding(exercise.name, passed=False, says=says, cause=cause, printed=printed)
    arrays = zip(facts.answers, ran.arrays[name], strict=True)
    return judged(facts, returned(arrays), printed, limits)


def returned(arrays: Iterable[tuple[str, Host]]) -> dict[str, Values]:
    """Arrays that a function returned, with the precision that they are in."""
    return {name: Values(array, stored_precision(array.dtype)) for name, array in arrays}


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
    return judged(facts, answers, ran.errors, limits)


def judged(facts: Facts, theirs: Mapping[str, Values], printed: str, limits: Limits) -> Finding:
    """Answers beside the right ones, and the mistake where they are wrong.

    Args:
        facts: What is right.
        theirs: The answers by name, all of them.
        printed: What the learner's code printed.
        limits: Of the exercise's own mistakes, which are run to compare with.
    """
    name, explained = facts.exercise.name, Explained(facts, theirs, limits)
    why = explained.misshapen() or explained.not_numbers()
    if why is not None:
        return Finding(name, passed=False, says=why.says, cause=why.cause, printed=printed)
    differences = {each: explained.difference(each) for each in theirs}
    wrong = next((each for each, difference in differences.items() if difference.beyond), None)
    why = explained.stand_in() or (explained.too_near() if wrong is None else explained.differing(wrong))
    if why is None:
        relative = max(difference.relative for difference in differences.values())
        agrees = "exactly" if relative == 0 else f"to {relative:.0e}"
        return Finding(name, passed=True, says=f"{', '.join(theirs)}: right, agrees {agrees}", printed=printed)
    place = "" if wrong is None or facts.is_ids(wrong) else _place(wrong, differences[wrong])
    return Finding(name, passed=False, says=why.says, cause=why.cause, place=place, printed=printed)


def _place(name: str, difference: Difference) -> str:
    theirs, ours = (spoken(value, 6) for value in difference.values)
    index = f"[{', '.join(map(str, difference.index))}]" if difference.index else ""
    return f"{name}{index} is {theirs}, and should be {ours}"
