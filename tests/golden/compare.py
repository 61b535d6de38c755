"""Two texts compared: words to the letter, numbers as far as another machine may round them otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

NUMBER = re.compile(r"(?<![\w#.])[-−+]?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)(?![\w])")
"""A number with a point or an exponent; whole numbers are counts, places and names, and are compared as words."""

RELATIVE = 1e-4
EXACT_DIGITS = 3
"""Numbers of so few digits are compared to the letter: one unit of their last digit would be too much."""

NOISE = 1e-9
"""Numbers that are both smaller are what rounding has left."""

MOST_TOLD = 40


def differences(frozen: str, now: str) -> list[str]:
    """The lines that differ, as `- frozen` and `+ now`; at most `MOST_TOLD`."""
    told = list(_differences(frozen.splitlines(), now.splitlines()))
    return [*told[:MOST_TOLD], *([f"  … and {len(told) - MOST_TOLD} more lines"] if len(told) > MOST_TOLD else [])]


def _differences(before: list[str], after: list[str]) -> Iterator[str]:
    words = [[NUMBER.sub("0.0", line) for line in lines] for lines in (before, after)]
    for kind, a, b, c, d in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        pairs = list(zip(before[a:b], after[c:d], strict=True)) if kind == "equal" or b - a == d - c else None
        if pairs is None:
            yield from (f"- {line}" for line in before[a:b])
            yield from (f"+ {line}" for line in after[c:d])
            continue
        for one, other in pairs:
            if not same_line(one, other):
                yield f"- {one}"
                yield f"+ {other}"


def same_line(one: str, other: str) -> bool:
    """Whether two lines say the same; where a number is written longer, the spaces beside it may be fewer."""
    if one == other:
        return True
    numbers = [NUMBER.findall(line) for line in (one, other)]
    if len(numbers[0]) != len(numbers[1]) or not all(map(same_number, *numbers)):
        return False
    words = [NUMBER.split(line) for line in (one, other)]
    if [len(each) for each in numbers[0]] != [len(each) for each in numbers[1]]:
        words = [[re.sub(r"[ ─-]+", " ", each).strip() for each in line] for line in words]
    return words[0] == words[1]


def same_number(one: str, other: str) -> bool:
    """Whether two numbers, as they are written, differ by no more than rounding does."""
    if one == other:
        return True
    a, b = (float(each.replace("−", "-")) for each in (one, other))
    if a == b or max(abs(a), abs(b)) < NOISE:
        return True
    if min(map(_digits, (one, other))) <= EXACT_DIGITS:
        return False
    return abs(a - b) <= max(RELATIVE * max(abs(a), abs(b)), 1.001 * max(map(_unit, (one, other))))


def _digits(number: str) -> int:
    """How many digits are written from the first that is not 0."""
    return len(re.sub(r"\D", "", re.split("e", number)[0]).lstrip("0"))


def _unit(number: str) -> float:
    """What one more in the last digit is."""
    mantissa, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
