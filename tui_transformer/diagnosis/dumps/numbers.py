"""Numbers in text, as programs print them: rows of a matrix, blank lines between matrices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.dumps.dump import Tensor, held
from tui_transformer.diagnosis.dumps.precision import printed_precision, significant
from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host

NUMBER = re.compile(
    r"[-+]?(?:(?<!\d)\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)(?![A-Za-z_\d.])", re.I
)
"""It is looked for at the first digit of many alone, so that a long line takes no longer than as many short ones."""

SEPARATORS = str.maketrans(dict.fromkeys("[](){},;|\t", " "))
LABEL = re.compile(
    r"\s*+(?:(?:row|token|pos(?:ition)?|r|i|t|line)\s*+)?[\[(]?\d++[\])]?\s*+[:=]|\s*+\[\d++\](?=\s*+[-+.\d])", re.I
)
"""The number of a row in front of it: `row 0:`, `[3]`."""

OTHER_SPELLINGS = {"−": "-", "∞": "inf", "1.#INF": "inf", "1.#QNAN": "nan", "1.#IND": "nan", "-nan(ind)": "nan"}

LONGEST_SIZE = 9
"""Digits of a size in a shape that somebody printed."""

Row = list[str]


def row(line: str) -> Row | None:
    """The numbers of a line that holds nothing else; None for any other line, [] for an empty one."""
    for theirs, ours in OTHER_SPELLINGS.items():
        line = line.replace(theirs, ours)
    bare = LABEL.sub("", line, count=1) if LABEL.match(line) else line
    for text in (bare, line):
        words = text.translate(SEPARATORS).split()
        if all(NUMBER.fullmatch(word) for word in words):
            return words
    return None


def blocks(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of numbers between empty ones."""
    runs: list[list[Row]] = [[]]
    for words in rows:
        if words:
            runs[-1].append(words)
        elif runs[-1]:
            runs.append([])
    return [block for block in runs if block]


class Printed(NamedTuple):
    """An array, and the words that were printed."""

    array: Host
    words: list[str]


def with_precision(printed: Mapping[str, Printed]) -> dict[str, Tensor]:
    """Arrays that one program printed, as exact as the digits say that it prints."""
    digits = significant([word for each in printed.values() for word in each.words if "." in word])
    return {name: held(name, array, printed_precision(words, digits)) for name, (array, words) in printed.items()}


def printed(rows: Sequence[Row]) -> Printed | None:
    """The array of printed rows; None where they are of different lengths.

    Whole numbers alone in a first line are a shape, where as many numbers follow.
    """
    parts = blocks(rows)
    words = [word for part in parts for line in part for word in line]
    if not words:
        return None
    shape = _shape(parts)
    stated = _stated(parts, words)
    if stated is not None:
        words, shape = words[len(parts[0][0]) :], stated
    if shape is None:
        return None
    return Printed(np.array([float(word) for word in words]).reshape(shape), words)


def _shape(parts: Sequence[Sequence[Row]]) -> Shape | None:
    """Blocks × rows × columns, where all are alike."""
    widths = {len(line) for part in parts for line in part}
    heights = {len(part) for part in parts}
    if len(widths) != 1:
        return None
    if len(heights) == 1 and len(parts) > 1:
        return len(parts), heights.pop(), widths.pop()
    if len(parts) > 1:
        return None
    return heights.pop(), widths.pop()


def _stated(parts: Sequence[Sequence[Row]], words: Sequence[str]) -> Shape | None:
    """A shape in the first line."""
    first = parts[0][0]
    if len(first) > 4 or not all(word.isdigit() and len(word) <= LONGEST_SIZE and int(word) for word in first):
        return None
    shape = tuple(map(int, first))
    rest = len(words) - len(first)
    return shape if rest and math.prod(shape) == rest else None
