"""A constant factor between a wrong answer and the right one, said as what it is: 5.65685 = √32 = √d_model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import permutations

from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Program

SYMBOLS = {
    "head width": "d_k",
    "dimension": "d_model",
    "head": "number of heads",
    "feed-forward": "d_ff",
    "vocabulary": "size of the vocabulary",
    "token": "number of tokens",
}
"""Names of axes, and what their sizes are called; of several that fit alike, the first."""

CONSTANTS = {
    math.log(2): "ln 2",
    1 / math.log(2): "1 ÷ ln 2",
    math.log(10): "ln 10",
    1 / math.log(10): "1 ÷ ln 10",
}
PLAIN = {-1.0: "has the opposite sign", 2.0: "is twice the right one", 0.5: "is half the right one"}
DIGITS = 6
LIKE = 1e-4
"""How far a factor may be from what it is said to be, as a part of it: six digits are less sure."""


def sizes_of(program: Program) -> dict[str, int]:
    """The sizes of a model that have a name of their own: d_k, d_model and so on."""
    sizes: dict[str, set[int]] = {}
    for step in program.steps:
        for axis in step.axes:
            sizes.setdefault(axis.name, set()).add(axis.size)
    return {symbol: max(sizes[name]) for name, symbol in SYMBOLS.items() if len(sizes.get(name, ())) == 1}


def times_said(factor: float, sizes: Mapping[str, int]) -> str:
    """What follows on "every cell": `is 5.65685 = √32 = √d_model times the right one`.

    Args:
        factor: Theirs ÷ ours.
        sizes: Numbers of the model by name.
    """
    plain = next((words for number, words in PLAIN.items() if math.isclose(factor, number, rel_tol=LIKE)), None)
    return plain or f"is {factor_said(factor, sizes)} times the right one"


def factor_said(factor: float, sizes: Mapping[str, int]) -> str:
    """A factor, and what it is where the numbers of the model make it: `5.65685 = √32 = √d_model`."""
    size, sign = abs(factor), "−" if factor < 0 else ""
    near = [each for each in _made(sizes) if math.isclose(size, each[0], rel_tol=LIKE)]
    if not near:
        return spoken(factor, DIGITS)
    value, digits, _ = near[0]  # which is what the factor is, however few digits it was worked out from
    words = (words for _, same, words in near if same == digits and words)
    return " = ".join(dict.fromkeys(sign + each for each in (spoken(value, DIGITS), digits, *words)))


def _made(sizes: Mapping[str, int]) -> Iterator[tuple[float, str, str]]:
    """Numbers that can be made of sizes, simple ones first: the value, with digits, and in words."""
    named = [(name, size) for name, size in sizes.items() if size > 1]
    for name, size in named:
        yield size, str(size), name
    for name, size in named:
        yield math.sqrt(size), f"√{size}", f"√{_closed(name)}"
    for name, size in named:
        yield 1 / size, f"1 ÷ {size}", f"1 ÷ {name}"
        yield 1 / math.sqrt(size), f"1 ÷ √{size}", f"1 ÷ √{_closed(name)}"
    for value, words in CONSTANTS.items():
        yield value, words, ""
    for (first, a), (second, b) in permutations(named, 2):
        yield a / b, f"{a} ÷ {b}", f"{first} ÷ {second}"
        yield math.sqrt(a / b), f"√{a} ÷ √{b}", f"√{_closed(first)} ÷ √{_closed(second)}"


def _closed(name: str) -> str:
    return f"({name})" if " " in name else name
