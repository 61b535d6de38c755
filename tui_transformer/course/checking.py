"""An answer beside the right one: one clear message about whatever is wrong with it, and the cause."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.course.exercise import Exercise, Why
from tui_transformer.course.running import Limits, Ran, run_command, run_python
from tui_transformer.course.sources import Answer, Facts, printed_answers
from tui_transformer.diagnosis.diagnose import judge
from tui_transformer.diagnosis.diagnosis import First, common_factor, describe_factor, sizes_of
from tui_transformer.diagnosis.dumps.dump import FLOAT64, Values, stored_values
from tui_transformer.diagnosis.matching import Entry
from tui_transformer.diagnosis.reference_values import Difference, compare
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.engine.number_format import spoken
from tui_transformer.errors import InputError
from tui_transformer.files import is_file
from tui_transformer.records import dataclass
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
        if not why.cause and "" not in ran.failed:
            why = Explained(facts, {}, limits).failing(why)
        return Finding(exercise.name, passed=False, says=f"{file.name}: {why.says}", cause=why.cause, printed=printed)
    arrays = zip(facts.answers, ran.arrays[name], strict=True)
    return judged(facts, {each: stored_values(array) for each, array in arrays}, printed, limits)


def check_command(exercise: Exercise, command: Sequence[str], limits: Limits = USUAL) -> Finding:
    """Run a learner's program, and say what is wrong with the numbers that it prints."""
    facts = Facts(exercise)
    ran = run_command(command, facts.inputs, limits)
    why = ran.failed.get("")
    if why is not None:
        return Finding(exercise.name, passed=False, says=f"{command[0]}: {why.says}", printed=ran.errors)
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
    place = ""
    if wrong is not None and not facts.is_ids(wrong):
        theirs_there, ours_there = (spoken(value, 6) for value in differences[wrong].values)
        index = ", ".join(map(str, differences[wrong].index))
        place = f"{wrong}{f'[{index}]' if index else ''} is {theirs_there}, and should be {ours_there}"
    return Finding(name, passed=False, says=why.says, cause=why.cause, place=place, printed=printed)


EXACT = 1e-9
"""Relative: computed in float64, a right answer is far nearer than this."""


@dataclass(frozen=True, eq=False)
class Explained:
    """A learner's answers by name beside the right ones; limits are of the exercise's own mistakes, which are run."""

    facts: Facts
    theirs: Mapping[str, Values]
    limits: Limits

    def misshapen(self) -> Why | None:
        """Answers of another shape; None where all have the right one."""
        for name, values in self.theirs.items():
            right = self.facts.answers[name]
            if values.array.shape == right.value.shape:
                continue
            if self.facts.is_ids(name):
                return self._by_token(name)
            axes = f" ({' × '.join(right.axes)})" if right.axes else ""
            shape = f"{name} has the shape {_shape(values.array)}: it should be {_shape(right.value)}{axes}"
            if known := self._known(shape):
                return known
            others = [(each, answer) for each, answer in self.facts.answers.items() if each != name]
            same = (each for each, answer in others if _alike(values, answer.value, answer.granted))
            if (other := next(same, None)) is not None:
                order = ", ".join(self.facts.answers)
                return Why(f"{name} has the numbers of {other}: return {order}, in this order", "answers-order")
            turned = _turned(values, right)
            return Why(f"{shape}. {turned}", "shape") if turned else Why(shape)
        return None

    def not_numbers(self) -> Why | None:
        """Answers with NaN; None where there is none."""
        for name, values in self.theirs.items():
            missing = np.isnan(values.array)
            if missing.any():
                place, count = ", ".join(map(str, np.argwhere(missing)[0])), int(missing.sum())
                more = f", {count} cells are" if count > 1 else ""
                says = f"{name}{f'[{place}]' if place else ''} is not a number (NaN){more}"
                return self._known(says) or Why(f"{says}: look for 0 ÷ 0 or ∞ − ∞")
        return None

    def stand_in(self) -> Why | None:
        """A number in the place of −∞, in an answer that is right otherwise; None where there is none."""
        for name, values in self.theirs.items():
            right = self.facts.answers[name]
            hidden = np.isneginf(right.value)
            theirs = values.array[hidden]
            if not theirs.size or not np.isfinite(theirs).all() or self.difference(name, ~hidden).beyond:
                continue
            if theirs.max() > np.abs(right.value[~hidden]).max(initial=0.0) * -2:
                continue  # not meant to hide: 0, or scores that were left as they are
            number = spoken(float(np.median(theirs)), 3)
            about = "" if theirs.min() == theirs.max() else "about "
            says = (
                f"Nearly: {name} has {about}{number} where −∞ is asked for. e^−∞ is 0 at any size of the other scores"
            )
            only = f"{number} only hides beside larger ones, and is not there in every precision"
            return Why(f"{says}; {only}: put −∞, in NumPy -np.inf", "mask-finite")
        return None

    def too_near(self) -> Why | None:
        """A mistake that is smaller than roundings of float32, where float64 shows it; None where there is none."""
        relative = max(self.difference(name).relative for name in self.theirs)
        whole = all(values.precision == FLOAT64 for values in self.theirs.values())
        if not whole or relative <= EXACT:
            return None
        return self._known(f"Nearly: right to {relative:.0e} and not exactly", EXACT)

    def differing(self, name: str) -> Why:
        """What is wrong with an answer of the right shape."""
        if self.facts.is_ids(name):
            return self._by_token(name)
        difference = self.difference(name)
        begin = f"{name} differs ({_size(difference)})"
        first = self._diagnosed()
        if first is not None and first.cause is not None:
            begin = f"{first.theirs} differs ({_size(self.difference(first.theirs))})"
            return Why(f"{begin}. {first.says[first.says.index('It matches') :]}", first.cause)
        if known := self._known(begin):
            return known
        if first is not None:
            return Why(f"{begin}. {first.says[first.says.index('No known mistake') :]}")
        factor = self._factor(name)
        return Why(f"{begin}. No known mistake explains it{f': {factor}' if factor else ''}.")

    def difference(self, name: str, counted: Host | None = None) -> Difference:
        """An answer beside the right one."""
        values, right = self.theirs[name], self.facts.answers[name]
        theirs = np.asarray(values.array, np.float64)
        return compare(theirs, right.value, counted, values.precision.of(theirs) + right.granted)

    def _by_token(self, name: str) -> Why:
        """Token IDs that differ: the first of them, with its words."""
        theirs, right = self.theirs[name].array.reshape(-1), self.facts.answers[name].value.reshape(-1)
        both = min(len(theirs), len(right))
        i = next((i for i in range(both) if theirs[i] != right[i]), both)
        counts = f"and should have {len(right)}: token {i}"
        if self.theirs[name].array.ndim != 1:
            says = f"{name} has the shape {_shape(self.theirs[name].array)}: it should be a list of {len(right)} IDs"
        elif i == len(right):
            says = f"{name} has {len(theirs)} tokens, {counts}, {self._word(theirs[i])}, is one too many"
        elif i == len(theirs):
            says = f"{name} ends after {i} token{'s' * (i != 1)}, {counts} is {self._word(right[i])}"
        else:
            words = f"{self._word(theirs[i])}, and should be {self._word(right[i])}"
            says = f"token {i} is the first that differs: {name}[{i}] is {words}"
        return self._known(says) or Why(says)

    def _word(self, number: float) -> str:
        words = self.facts.words
        word = f"“{visible(words[int(number)])}”" if 0 <= number < len(words) and number == int(number) else "no word"
        return f"{number:g} ({word})"

    @cached_property
    def _mistaken(self) -> Ran:
        exercise = self.facts.exercise
        if not exercise.mistakes or not is_file(exercise.wrong):
            return Ran({}, {}, "")
        return run_python(
            exercise.wrong, list(exercise.mistakes), self.facts.inputs, list(self.facts.answers), self.limits
        )

    def _known(self, begin: str, relative: float = 0.0) -> Why | None:
        """The mistake of the exercise whose answers are the learner's, all of them; said behind a sentence."""
        granted = {
            name: relative * float(np.abs(answer.value).max(initial=0.0)) if relative else answer.granted
            for name, answer in self.facts.answers.items()
        }
        for function, mistake in self.facts.exercise.mistakes.items():
            arrays = self._mistaken.arrays.get(function)
            if arrays is not None and mistake.says:
                pairs = zip(self.theirs.items(), arrays, strict=True)
                if all(_alike(values, array, granted[name]) for (name, values), array in pairs):
                    return Why(f"{begin}. {mistake.says}", mistake.cause)
        return None

    def failing(self, why: Why) -> Why:
        """Why a learner's function fails, with the mistake of the exercise that fails so, wherever that is written."""

        def unplaced(reason: Why | None) -> str:
            return re.sub(r"^line \d+: |`.*`: ", "", reason.says if reason else "")

        for function, mistake in self.facts.exercise.mistakes.items():
            if mistake.says and unplaced(self._mistaken.failed.get(function)) == unplaced(why):
                return Why(f"{why.says}. {mistake.says}", mistake.cause)
        return why

    def _diagnosed(self) -> First | None:
        """The first wrong step; None where the answers are no steps."""
        facts, right = self.facts, self.facts.reference
        steps = {name: facts.step(facts.exercise.answers[name]) for name in self.theirs}
        if None in steps.values():
            return None
        entries = [
            Entry(step, name, right.value(step), None, FLOAT64)
            for name in facts.inputs
            if (step := facts.step(facts.exercise.inputs[name])) and not right.program.by_name[step].op.integer
        ]
        entries += [
            Entry(step, name, np.asarray(self.theirs[name].array, np.float64)[None], None, self.theirs[name].precision)
            for name, step in steps.items()
            if step
        ]
        return judge(sorted(entries, key=lambda entry: right.program.places[entry.step]), right)[1]

    def _factor(self, name: str) -> str:
        """One factor between all cells of an answer and the right ones; of a single number, one that has a name."""
        theirs, right = self.theirs[name].array, self.facts.answers[name].value
        a, b = (np.asarray(each, np.float64).reshape(-1) for each in (theirs, right))
        factor = common_factor(a, b) if np.isfinite(a).all() else None
        if not factor:
            return ""
        sizes = sizes_of(self.facts.reference.program)
        if self.facts.exercise.predicts:
            sizes["number of counted positions"] = sum(each != NOT_COUNTED for each in self.facts.targets)
        said = describe_factor(factor, sizes)
        if a.size == 1:
            return f"it {said}" if " = " in said or not said.endswith("times the right one") else ""
        return f"every cell {said}"


def _alike(values: Values, other: Host, granted: float) -> bool:
    """True if answers are those of a mistake, NaN in the same places included."""
    theirs = np.asarray(values.array, np.float64)
    if theirs.shape != other.shape:
        if theirs.ndim != 2 or other.ndim < 2 or theirs.shape != (other.size // other.shape[-1], other.shape[-1]):
            return False
        theirs = theirs.reshape(other.shape)  # as text has it: row below row
    missing, tolerance = np.isnan(other), values.precision.of(theirs) + granted
    if (np.isnan(theirs) != missing).any():
        return False
    theirs, other = np.where(missing, 0.0, theirs), np.where(missing, 0.0, other)
    return not compare(theirs, other, None, tolerance).beyond


def _turned(values: Values, right: Answer) -> str:
    """How an answer of another shape becomes the right one, where it holds the right numbers; else ""."""
    theirs = values.array
    for axes in permutations(range(right.value.ndim)):
        moved = right.value.transpose(axes)
        if moved.size == theirs.size and _alike(values, moved.reshape(theirs.shape), right.granted):
            reshape = "" if moved.shape == theirs.shape else f".reshape({', '.join(map(str, moved.shape))})"
            back = np.argsort(axes).tolist()
            if back == sorted(back):
                return f"The numbers are right: {reshape} gives them their axes"
            turn = f"{reshape}.transpose({', '.join(map(str, back))})"
            return f"The numbers are right and in another order of axes: {turn} puts them in place"
    return ""


def _size(difference: Difference) -> str:
    return f"relative {difference.relative:.2g}" if np.isfinite(difference.largest) else "one side is infinite"


def _shape(array: Host) -> str:
    return shape_text(array.shape) or "one number"
