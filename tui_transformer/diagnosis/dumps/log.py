"""Logs with a heading before each matrix, as a program prints them with `cout` or `printf`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, part_of, role_of
from tui_transformer.diagnosis.dumps.headings import Heading, Scopes, is_named, is_sentence, says
from tui_transformer.diagnosis.dumps.lines import (
    PAGE,
    SCALE,
    SIGNS,
    SIZED,
    SLICE,
    TYPE,
    Label,
    bare,
    columns_of,
    label_of,
    numbers_from,
    row_end,
    step_between,
    with_count,
)
from tui_transformer.diagnosis.dumps.numbers import LETTERS, RAGGED, ROWS, Matrix, Printed, with_precision
from tui_transformer.diagnosis.naming.words import BEGINNING, PLACES, phrase_of
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

LARGEST = 1 << 28
"""Bytes of a text that is read."""

PIECE = 1 << 16
"""Letters of a line that are read at a time."""

MOST, MOST_IN_A_ROW = 50_000, 200_000
"""Matrices of a log, and headings after each other of which none has numbers."""

MOST_UNREAD = 20
"""Lines with numbers that are no matrix, by name."""

BRACKET = re.compile(r"[\[\]{}]")
SHAPE = re.compile(r"\(\s*+\d++(?:\s*+,\s*+\d++)*+\s*+,?+\s*+\)\s*+(?=\[)")
"""A shape between a name and its numbers."""

IMPLICIT = "#"
"""In front of the numbers of sentences that are not said, but counted."""

DECIMAL = re.compile(
    r"(?<![\w.])[-+]?\d+\.\d+(?:[eE][-+]?\d+)?(?![\w.%])(?!\s*(?:m?s|us|µs|ns|sec|seconds?|min|minutes?|[KMGT]i?B|x)\b)"
)
"""A number that is no count of something, nor a time, nor a size."""


class Line(NamedTuple):
    """A line, or a part of a long one, which ends here or not; or `rows`: lines of numbers alone, and blank ones."""

    text: str
    ended: bool = True
    rows: bool = False


class Found(NamedTuple):
    """A matrix under its heading."""

    heading: Heading
    printed: Printed


@dataclass
class Reading:
    """The state of reading.

    Attributes:
        scopes: What the headings so far say.
        line: The line above the matrix which is read; "" where there is none.
        heading: What that says, once it is asked for.
        matrix: What is read.
        label: What stood in front of the last row.
        found: The matrices so far.
        refused: Headings whose numbers cannot be read, and why.
        unread: Lines with numbers that are no matrix.
        begun: Headings that a sentence begins with, and whether others came after them.
        sentence: How many sentences ended.
        within: What the line that goes on is: "row", or "text".
        in_a_row: Headings since the last numbers.
    """

    scopes: Scopes = field(default_factory=Scopes)
    line: str = ""
    heading: Heading | None = None
    matrix: Matrix = field(default_factory=Matrix)
    label: Label | None = None
    found: list[Found] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    begun: dict[tuple[str, str], bool] = field(default_factory=dict)
    sentence: int = 0
    within: str = ""
    in_a_row: int = 0

    def take(self, line: Line) -> None:
        """Read a line, or the next part of one."""
        if line.rows:
            self.matrix.add_rows(line.text)
            if line.text.strip():
                self._filled()
                self.label = None
        elif self.within:
            if self.within == "row" and not self.matrix.add(row_end(line.text), ended=line.ended):
                self.matrix.broken = LETTERS
        elif not line.text.strip():
            self.matrix.blank()
        else:
            self._line(bare(line.text), ended=line.ended)
        if line.ended:
            self.within = ""

    def _line(self, text: str, *, ended: bool) -> None:
        if (columns := columns_of(text)) is not None:
            first, last, text = columns
            self.matrix.begin_columns(first, last)
        if "*" in text and (scaled := SCALE.search(text)):
            if text[: scaled.start()].strip():
                self._line(text[: scaled.start()], ended=True)
            self.matrix.scale, text = float(scaled[1]), text[scaled.end() :]
        self.within = "text"
        whole = text.replace("...", " ").replace("…", " ")
        if SLICE.fullmatch(text):
            self.matrix.begin_slice()
        elif page := PAGE.fullmatch(text):
            # a matrix of an array, of MATLAB's: the first under a heading, each other behind the one before it
            if int(page[2][:9]) > 1 and self.matrix:
                self.matrix.begin_slice()
            elif page[1] not in ("ans", "") or not self.line or self.matrix:
                self._begin(page[1])
        elif TYPE.fullmatch(text):
            return
        elif not any(map(str.isalnum, text)):
            self.matrix.elided |= whole != text and bool(self.matrix)
            self.matrix.add("".join(BRACKET.findall(text)), ended=ended)
        elif any(self._row(each, ended=ended) for each in with_count(whole)):
            self.label = None
            self.matrix.elided |= whole != text
        elif self._labelled(whole, ended=ended):
            self.matrix.elided |= whole != text
        else:
            self.label = None
            waiting = self.line and not self.matrix and whole[-1:] not in ":=" and is_named(self.line)
            if waiting and not (is_named(whole) or is_sentence(whole)):
                self._leave(whole)  # words between a heading and its matrix
            else:
                self._begin(whole)

    def _row(self, text: str, *, ended: bool) -> bool:
        """Numbers alone, as a row of what is read."""
        if not any(map(str.isalnum, text)) or not self.matrix.add(text, ended=ended):
            return False
        self._filled()
        self.within = "row"
        return True

    def _filled(self) -> None:
        self.in_a_row = 0
        if self.line:
            self._read()
        self.scopes.filled()

    def _leave(self, line: str) -> None:
        if len(self.unread) < MOST_UNREAD and DECIMAL.search(line):
            self.unread.append(" ".join(line.split()))

    def _labelled(self, text: str, *, ended: bool) -> bool:
        """Numbers behind a label: a heading and its matrix, or a row with its name in front."""
        at = numbers_from(text)
        words, rest = text[:at].strip().rstrip(SIGNS + " -"), SHAPE.sub("", text[at:], count=1)
        if not at or not any(map(str.isalpha, words)):
            return False
        if sized := SIZED.fullmatch(words):
            if any(map(str.isalpha, sized[1])) and (self.matrix or not self.line):
                self._begin(sized[1])
            return True
        number = rest.strip(" []()")
        if number.isdigit() and phrase_of(words) in PLACES:
            self._begin(f"{words} {number}")
            return True
        label = label_of(words)
        if rest.count("[") > 1 or rest.count("{") > 1:
            self._begin(words)
            self.label = None
            return self._row(rest, ended=ended)
        self.label = self._next(label) or self._first(label)
        return self._row(rest, ended=ended and len(self.label.place) < 2)

    def _next(self, label: Label) -> Label | None:
        """A label that goes on with those before it."""
        last = self.label
        if last is None or not self.line:
            return None
        if label.text == last.text:
            return last
        if label.stem and label.stem == last.stem and (step := step_between(last.place, label.place)):
            if self.line == last.text and not last.named:
                self.heading, self.line = self._read().renamed(label.stem), label.stem
            if step > 1 and len(label.place) > 1:
                self.matrix.end_row()
            if step > 2:
                self.matrix.blank()
            return label
        return label._replace(named=True) if last.named and not is_named(label.text) else None

    def _first(self, label: Label) -> Label:
        """A label that begins something: a row under the heading that waits for its matrix, or a matrix of its own."""
        waiting = self.line and not self.matrix and self._read().text
        if waiting and not is_named(label.stem or label.text):
            return label._replace(named=True)
        self._begin(label.text)
        return label

    def _begin(self, line: str) -> None:
        """A heading; the matrix before it is there."""
        self.end()
        self.line = line
        if says(line):
            self.in_a_row += 1
            if self.in_a_row > MOST_IN_A_ROW:
                raise InputError(f"more than {MOST_IN_A_ROW:,} headings without numbers: is it a log of arrays?")
            self._read()

    def _read(self) -> Heading:
        """What the heading says, by itself and by those before it."""
        if self.heading is not None:
            return self.heading
        heading = self.scopes.read(self.line)
        phrase = phrase_of(heading.text)
        if phrase in BEGINNING and self.begun.setdefault((heading.stack, phrase), False):
            self.sentence += 1
            self.begun = {(heading.stack, phrase): False}
        if self.sentence and not heading.sentence:
            heading = replace(heading, sentence=f"{IMPLICIT}{self.sentence + 1}")
        self.heading = heading
        return heading

    def end(self) -> None:
        """The matrix that was being read is there."""
        matrix = self.matrix
        if matrix or matrix.elided:
            heading = self._read() if self.line else Heading("numbers")
            heading = heading if heading.text else heading.renamed("numbers")
            if len(self.found) + len(self.refused) >= MOST:
                raise InputError(f"more than {MOST:,} headings with numbers: print fewer, or write the arrays as npz")
            printed = matrix.printed()
            if isinstance(printed, str):
                self.refused.setdefault(heading.name, printed)
            else:
                self.found.append(Found(heading, printed))
                if phrase_of(heading.text) not in BEGINNING:
                    self.begun = dict.fromkeys(self.begun, True)
        elif self.line:
            self._leave(self.line)
        self.heading, self.line, self.label = None, "", None
        self.matrix = Matrix(matrix.looked)


def text_lines(path: Path) -> Iterator[Line]:
    """The lines of a text file; a long one in parts, cut between numbers.

    Raises:
        InputError: It is too large to be one, or holds what is no text.
    """
    check_regular(path)
    if path.stat().st_size > LARGEST:
        raise InputError(f"{shown_path(path)}: too large for a text: write the arrays as npz")
    with path.open("rb") as file:
        begin = file.read(PIECE)
    wide = begin[:2] in (b"\xff\xfe", b"\xfe\xff")
    if b"\0" in begin and not wide:
        raise InputError(f"{shown_path(path)}: not a text, nor a file of arrays whose ending is known")
    rest, within = "", False
    with path.open(encoding="utf-16" if wide else "utf-8-sig", errors="replace") as text:
        while piece := text.read(PIECE):
            piece, at = rest + piece, 0
            while end := piece.find("\n", at) + 1:
                rows = None if within else ROWS.match(piece, at)
                yield Line(rows[0], rows=True) if rows else Line(piece[at:end])
                at, within = rows.end() if rows else end, False
            rest = piece[at:]
            if len(rest) >= PIECE:
                cut = max(map(rest.rfind, " ,\t;")) + 1 or len(rest)
                yield Line(rest[:cut], ended=False)
                rest, within = rest[cut:], True
    yield Line(rest)


def log_of(path: Path, lines: Iterable[Line]) -> Dump:
    """The matrices of a text, each under the line before it.

    Raises:
        InputError: It has no numbers under a heading, or none that can be read.
    """
    reading = Reading()
    try:
        for line in lines:
            reading.take(line)
        reading.end()
    except InputError as error:
        if str(error).startswith(shown_path(path)):
            raise
        raise InputError(f"{shown_path(path)}: {error}") from error
    unread = {f"the line {visible(line)[:60]!r}": "its numbers stand among words" for line in reading.unread}
    if not reading.found:
        name, reason = next(iter(reading.refused.items()), ("", ""))
        if reason:
            more = ": print as many numbers in each row" if reason == RAGGED else ""
            raise InputError(f"{shown_path(path)}: {visible(name)}: {reason}{more}")
        raise InputError(
            f"{shown_path(path)}: has no numbers under a heading: print each matrix below a line with its name"
        )
    return _dump(path, reading.found, reading.refused | unread)


def matrix_of(path: Path) -> Printed | str | None:
    """The one matrix of a file of numbers, over which its name may stand; why it cannot be read, None where none is."""
    matrix = Matrix()
    for line in text_lines(path):
        if line.rows:
            matrix.add_rows(line.text)
            continue
        text = bare(line.text)
        if not text.strip():
            matrix.blank()
        else:
            any(matrix.add(each, ended=line.ended) for each in with_count(text))
    return matrix.printed() if matrix else None


def _dump(path: Path, found: Iterable[Found], refused: Mapping[str, str]) -> Dump:
    """The matrices of every sentence; those of the first, and the other sentences behind it."""
    counts: Counter[Heading] = Counter()
    sentences: dict[str, dict[str, Found]] = {}
    for heading, printed in found:
        counts[heading.key] += 1
        numbered = replace(heading, number=counts[heading.key])
        of_it = sentences.setdefault(heading.sentence, {})
        names = (f"{numbered.name} ({i})" if i > 1 else numbered.name for i in count(1))
        of_it[next(name for name in names if name not in of_it)] = Found(numbered, printed)
    every: list[dict[str, Tensor]] = []
    notes: list[str] = []
    for of_it in sentences.values():
        tensors = with_precision({name: each.printed for name, each in of_it.items()})
        every.append({name: replace(tensor, heading=of_it[name].heading) for name, tensor in tensors.items()})
        notes += [f"{visible(name)}: {each.printed.note}" for name, each in of_it.items() if each.printed.note]
    first, *rest = _shared(list(sentences), every)
    return Dump(path, first, tuple(notes), dict(refused), tuple(Dump(path, tensors) for tensors in rest))


def _shared(sentences: Sequence[str], every: Sequence[dict[str, Tensor]]) -> Sequence[dict[str, Tensor]]:
    """The matrices of every sentence, with its rows of what stands before the first."""
    said = [each for each in sentences if each and not each.startswith(IMPLICIT)]
    if sentences[0] or not said:
        return every
    common, *rest = every
    if not all(role_of(tensor) for tensor in common.values()):
        return [common | rest[0], *rest[1:]]

    def row(tensor: Tensor, i: int) -> Tensor:
        return part_of(tensor, i, tensor.name) if len(tensor.shape) == 2 and tensor.shape[0] == len(rest) else tensor

    return [{name: row(tensor, i) for name, tensor in common.items()} | each for i, each in enumerate(rest)]
