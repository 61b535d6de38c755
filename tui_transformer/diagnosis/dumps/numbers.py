"""Numbers in text, as programs print them: rows of a matrix, with blank lines or brackets between matrices."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain, groupby, pairwise
from typing import NamedTuple

import numpy as np

from tui_transformer.diagnosis.dumps.dump import FEW, USUAL, Digits, Tensor, held, precision_of
from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.records import dataclass, field

NUMBER = re.compile(
    r"[-+]?(?:(?<!\d)\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)(?![A-Za-z_\d.])", re.I
)
"""It is looked for at the first digit of many alone, so that a long line takes no longer than as many short ones."""

PLAIN = re.compile(r"(?:[-+.\deE\s,;|()\[\]{}]++|nan|inf(?:inity)?)*+", re.I)
"""A text of numbers and of what stands between them."""

_WORD = r"[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
ROWS = re.compile(rf"(?:[ \t]*+(?:{_WORD}(?:[ \t]++|(?=\n)))*+\n)++")
"""Whole lines of numbers between spaces, and blank ones."""

SEPARATORS = str.maketrans(dict.fromkeys("[](){},;|\t", " "))
BRACKETS = re.compile(r"([\[\]{};])")

_COMMA = r"(?:[-+]?\d++,\d++(?:[eE][-+]?\d++)?|[-+]?nan|[-+]?inf(?:inity)?)"
COMMAS = re.compile(rf"[\s;|]*+{_COMMA}(?:[\s;|]++{_COMMA})*+[\s;|]*+", re.I)
"""Numbers with a comma for the point, and spaces or semicolons between them."""

SPACED = re.compile(r"\d[ \t]+[-+]?\d")
GLUED = re.compile(r"\d,\d")

OTHER_SPELLINGS = {
    "−": "-",
    "∞": "inf",
    "1.#INF": "inf",
    "1.#QNAN": "nan",
    "1.#IND": "nan",
    "nan(ind)": "nan",
    "nan(snan)": "nan",
    **dict.fromkeys("│┃║⎡⎢⎣⎤⎥⎦⎛⎜⎝⎞⎟⎠", "|"),
}

LONGEST_SIZE = 9
"""Digits of a size in a shape that somebody printed."""

LOOKED_AT = 50_000
STRIDE = 16
"""The digits of so many numbers of a file are looked at; of what follows, those of every so many-th."""

MOST_RUNS = 1 << 17
"""So often may the width of rows change in a matrix, blank lines among them."""

DEEPEST = 32
"""Brackets within brackets."""

MANY = 1 << 20
"""So many numbers that are exact in float32 are held in it."""

COUNTED_ROWS = 3
"""Rows whose first numbers may be taken for their own, where these count them."""

ELIDED = "shows only its corners: print it whole"
RAGGED = "rows of different lengths"
LETTERS = "letters among its numbers"
MIXED = "commas and spaces between its numbers: write decimal points"
SCALES = "its parts are multiplied by numbers that differ: print each under a heading of its own"
APART = "the parts of its columns do not fit together"


class Part(NamedTuple):
    """Some columns of a wide matrix, counted from 1, and how many numbers and runs of rows come before them."""

    first: int
    last: int
    values: int
    runs: int


class Printed(NamedTuple):
    """An array that was printed, its digits, and what was taken for granted."""

    array: Host
    digits: Digits
    note: str = ""


def plain(text: str) -> str:
    """A text with numbers as they are usually spelled."""
    if text.isascii() and "#" not in text and "(" not in text:
        return text
    for theirs, ours in OTHER_SPELLINGS.items():
        text = text.replace(theirs, ours)
    return text


@dataclass
class Matrix:
    """Numbers that are being read, row by row, in little more memory than they need.

    Attributes:
        looked: How many numbers of the file were looked at for their digits before.
        values: The numbers.
        runs: Widths of rows and how many follow each other; a width of 0 is a blank line.
        closed: How many brackets were closed, by depth.
        depth: How many brackets are open.
        row: Numbers of the row that is being read.
        first: The words of the first row.
        elided: Numbers were left out.
        broken: Why it cannot be read; "" where it can.
        ragged: Widths changed more often than in any matrix; its numbers are not held.
        scale: What the numbers that follow are multiplied by.
        scales: All of these.
        parts: Where the columns of a wide matrix go on.
        commas: Its numbers have a comma for the point.
    """

    looked: int = 0
    values: array[float] = field(default_factory=lambda: array("f"))
    digits: Digits = field(default_factory=Digits)
    runs: list[list[int]] = field(default_factory=list)
    closed: dict[int, int] = field(default_factory=dict)
    depth: int = 0
    row: int = 0
    first: list[str] = field(default_factory=list)
    elided: bool = False
    broken: str = ""
    ragged: bool = False
    scale: float = 1.0
    scales: set[float] = field(default_factory=set)
    parts: list[Part] = field(default_factory=list)
    commas: bool = False

    def __bool__(self) -> bool:
        return bool(self.values) or self.ragged

    def add(self, text: str, *, ended: bool = True) -> bool:
        """Take the numbers of a line or of a part of it; False where it is no text of numbers, which is left.

        Args:
            text: The text.
            ended: The line ends here, and its row where no bracket is open.
        """
        if not PLAIN.fullmatch(text):
            return False
        brackets = "[" in text or "]" in text or "{" in text or "}" in text
        if not brackets and not self.depth and (self.commas or "," in text):
            text = self._pointed(text)
        words = text.translate(SEPARATORS).split()
        try:
            self.hold(words)
        except ValueError:
            return False
        if brackets or (self.depth and ";" in text):
            for i, part in enumerate(BRACKETS.split(text)):
                if i % 2:
                    self._bracket(part)
                elif part:
                    self._widen(part.translate(SEPARATORS).split())
        else:
            self._widen(words)
        if ended and not self.depth:
            self.end_row()
        return True

    def _pointed(self, text: str) -> str:
        """A line with points, where the commas in its numbers are those of decimals."""
        if COMMAS.fullmatch(text) and (self.commas or (not self and len(text.split()) > 1)):
            self.commas |= "," in text
            return text.replace(",", ".")
        if self.commas or ("." not in text and GLUED.search(text) and SPACED.search(text)):
            self.broken = self.broken or MIXED
        return text

    def begin_slice(self) -> None:
        """Another matrix of an array begins, with a factor of its own."""
        self.blank()
        self.scale = 1.0

    def begin_columns(self, first: int, last: int) -> None:
        """What follows are these columns, counted from 1, of the same rows."""
        self.blank()
        if len(self.parts) < MOST_RUNS:
            self.parts.append(Part(first, last, len(self.values), len(self.runs)))
        else:
            self.broken = APART

    def add_rows(self, text: str) -> None:
        """Take whole lines of numbers between spaces, and blank ones, as `ROWS` finds them."""
        if self.depth:
            self.add(text, ended=False)
            return
        if self.commas and text.strip():
            self.broken = self.broken or MIXED
        lines = iter(text.splitlines())
        while (self.row or not self.runs) and (line := next(lines, None)) is not None:
            if not line.strip():
                self.blank()
            else:
                self.add(line)
        rows = [line.split() for line in lines]
        self.hold(list(chain.from_iterable(rows)))
        for width, alike in groupby(map(len, rows)):
            if width:
                self._run(width, len(list(alike)))
            else:
                self.blank()

    def hold(self, words: list[str]) -> None:
        """Hold numbers, in half the memory as long as all are exact in float32.

        Raises:
            ValueError: A word is none.
        """
        numbers = list(map(float, words))
        if self.scale != 1:
            numbers = [self.scale * each for each in numbers]
        if words:
            self.scales.add(abs(self.scale))
        self.digits.add(words if self.looked < LOOKED_AT else words[::STRIDE])
        self.looked += len(words)
        if self.ragged:
            return
        if self.values.typecode == "f":
            coarse = array("f", numbers)
            if coarse.tolist() == numbers:
                self.values.extend(coarse)
                return
            coarse, self.values = self.values, array("d")
            for start in range(0, len(coarse), MANY):  # a signal is heard between the parts
                self.values.extend(coarse[start : start + MANY].tolist())
        self.values.extend(numbers)

    def _widen(self, words: list[str]) -> None:
        if not self.runs and len(self.first) <= 4:
            self.first += words[:5]
        self.row += len(words)

    def _bracket(self, sign: str) -> None:
        if sign == ";" and not self.depth:
            return
        self.end_row()
        if sign == ";":
            return
        if sign in "[{":
            self.depth += 1
            if self.depth > DEEPEST:
                self.broken = self.broken or RAGGED
        elif self.depth > DEEPEST:
            self.depth -= 1
        elif self.depth:
            self.closed[self.depth] = self.closed.get(self.depth, 0) + 1
            self.depth -= 1

    def end_row(self) -> None:
        """The row that was being read is whole."""
        if self.row:
            self._run(self.row)
        self.row = 0

    def blank(self) -> None:
        """An empty line, which ends a block of rows."""
        if not self.depth:
            self.end_row()
            if self.runs and self.runs[-1][0]:
                self._run(0)

    def _run(self, width: int, count: int = 1) -> None:
        if self.runs and self.runs[-1][0] == width:
            self.runs[-1][1] += count
        elif len(self.runs) < MOST_RUNS:
            self.runs.append([width, count])
        else:
            self.ragged, self.values = True, array("f")

    def printed(self) -> Printed | str:
        """The array; why it cannot be read, where it cannot.

        Whole numbers alone in a first line are a shape, where as many numbers follow.
        """
        self.end_row()
        if self.elided:
            return ELIDED
        if self.broken or self.ragged:
            return self.broken or RAGGED
        if len(self.scales) > 1 and max(self.scales) > 1:
            return SCALES
        self.digits.scale = max(self.scales, default=1.0)
        values: Host = np.frombuffer(self.values, self.values.typecode)
        if values.size <= MANY:
            values = values.astype(np.float64)
        if self.parts:
            return self._joined(values)
        stated = self._stated()
        if stated is not None:
            return Printed(values[len(self.first) :].reshape(stated), self.digits)
        runs = [(width, count) for width, count in self.runs if width]
        widths = dict.fromkeys(width for width, _ in runs)
        shape = self._shape([count for _, count in runs], *widths) if len(widths) == 1 else None
        if shape is not None and math.prod(shape) == values.size:
            return self._without_counts(Printed(values.reshape(shape), self.digits))
        full, rest = runs[::2], runs[1::2]  # rows that go on in a shorter line, as in a narrow terminal
        if len(full) < 2 or len(full) != len(rest) or len({*full}) != 1 or len({*rest}) != 1:
            return RAGGED
        (width, lines), (left, last) = full[0], rest[0]
        if last != 1 or left >= width:
            return RAGGED
        note = f"rows of {' and '.join(map(str, widths))} are joined"
        return Printed(values.reshape(len(full), width * lines + left), self.digits, note)

    def _joined(self, values: Host) -> Printed | str:
        """The columns that were printed in parts, side by side; several matrices of an array behind each other."""
        ends = [*self.parts[1:], Part(0, 0, values.size, len(self.runs))]
        matrices: list[list[Host]] = []
        column = 0
        for part, end in zip(self.parts, ends, strict=True):
            width = part.last - part.first + 1
            if any(each not in (0, width) for each, _ in self.runs[part.runs : end.runs]):
                return RAGGED
            if part.first == 1:
                matrices.append([])
                column = 0
            if part.first != column + 1 or not matrices:
                return APART
            matrices[-1].append(values[part.values : end.values].reshape(-1, width))
            column = part.last
        shapes = {tuple(part.shape for part in parts) for parts in matrices}
        if self.parts[0].values or len(shapes) != 1 or len({part.shape[0] for part in matrices[0]}) != 1:
            return APART
        whole = np.stack([np.hstack(parts) for parts in matrices])
        return Printed(whole[0] if len(matrices) == 1 else whole, self.digits)

    def _stated(self) -> Shape | None:
        """A shape in the first line."""
        first, width = self.first, self.runs[0][0] if self.runs else 0
        if len(first) != width or len(first) > 4:
            return None
        if not all(word.isdigit() and len(word) <= LONGEST_SIZE and int(word) for word in first):
            return None
        shape = tuple(map(int, first))
        rest = len(self.values) - len(first)
        return shape if rest and math.prod(shape) == rest else None

    def _shape(self, heights: Sequence[int], width: int) -> Shape | None:
        """The shape of rows of one width: as brackets in brackets say, else of blocks that are alike."""
        counts = [self.closed.get(depth, 0) for depth in range(1, max(self.closed, default=0) + 1)]
        if len(counts) > 1 and all(counts) and not self.depth and not any(b % a for a, b in pairwise(counts)):
            sizes = (*counts[:1], *(inner // outer for outer, inner in pairwise(counts)), width)
            return sizes[1:] if sizes[0] == 1 else sizes
        if len(set(heights)) != 1:
            return None
        return (len(heights), heights[0], width) if len(heights) > 1 else (heights[0], width)

    def _without_counts(self, whole: Printed) -> Printed:
        """The array without a first column that counts the rows."""
        rows = whole.array
        if rows.ndim != 2 or rows.shape[1] < 2 or len(rows) < COUNTED_ROWS or self.digits.decimals <= {0}:
            return whole
        if rows[0, 0] not in (0, 1) or not self.first[0].isdigit() or (np.diff(rows[:, 0]) != 1).any():
            return whole
        return Printed(rows[:, 1:], self.digits, "the first column counts the rows")


def with_precision(printed: Mapping[str, Printed]) -> dict[str, Tensor]:
    """Arrays that one program printed, as exact as its numbers with a point say that it prints."""
    looked = [each.digits for each in printed.values()]
    most = max((each.most_of_fractions for each in looked), default=0)
    most = most if sum(each.fractions for each in looked) > FEW else max(most, USUAL)
    return {name: held(name, each.array, precision_of(each.digits, most)) for name, each in printed.items()}
