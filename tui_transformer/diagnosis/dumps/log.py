"""Logs with a heading before each matrix, as a program prints them with `cout` or `printf`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tui_transformer.diagnosis.dumps.dump import Dump
from tui_transformer.diagnosis.dumps.numbers import (
    NUMBER,
    OTHER_SPELLINGS,
    SEPARATORS,
    Printed,
    Row,
    printed,
    row,
    with_precision,
)
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

LARGEST = 1 << 28
"""Bytes of a text that is read."""

LONGEST = 120
"""Letters of a heading."""

LAYER = re.compile(r"(?:encoder|decoder|layer|block)[\s_#.:-]*(?:layer[\s_#.:-]*)?(\d+)", re.I)
SIZES = re.compile(r"[(\[{]\s*\d+(?:\s*[x×,*]\s*\d+)+\s*[)\]}]")
"""Sizes of a matrix in its heading: (4x16)."""

HEAD = re.compile(r"heads?[\s_#.:-]*(\d+)", re.I)


@dataclass
class Reading:
    """The state of reading: the heading, the head in it, its rows, and layer and head that earlier headings named."""

    name: str = ""
    rows: list[Row] = field(default_factory=list)
    layer: str = ""
    head: str = ""
    own: str = ""
    tensors: dict[str, Printed] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def begin(self, heading: str) -> None:
        """A new heading; the layer that it names counts for those that follow, and the head where no matrix follows."""
        if not any(self.rows) and self.own:
            self.head = self.own
        self.end()
        heading = SIZES.sub(" ", heading)
        layer, head = LAYER.search(heading), HEAD.search(heading)
        if layer:
            self.layer, self.head = layer[0], ""
        self.own = head[0] if head else ""
        rest = " ".join(HEAD.sub("", LAYER.sub("", heading)).split()).strip(" \t-=:#*_.,()[]")
        self.name = " ".join(filter(None, (self.layer, rest, self.own or self.head))) if rest else ""

    def end(self) -> None:
        """The matrix that was being read is there."""
        if any(self.rows):
            self._add(self.name or "numbers", self.rows)
        self.name, self.rows = "", []

    def _add(self, name: str, rows: list[Row]) -> None:
        name = name[:LONGEST]
        matrix = printed(rows)
        if matrix is None:
            self.notes.append(f"{name}: rows of different lengths are left out")
            return
        count = sum(re.sub(r" \(\d+\)$", "", other) == name for other in self.tensors)
        name = f"{name} ({count + 1})" if count else name
        self.tensors[name] = matrix


def read_text(path: Path) -> str:
    """A text file.

    Raises:
        InputError: It is too large to be one, or holds what is no text.
    """
    check_regular(path)
    if path.stat().st_size > LARGEST:
        raise InputError(f"{shown_path(path)}: too large for a text: write the arrays as npz")
    data = path.read_bytes()
    if b"\0" in data[: 1 << 16]:
        raise InputError(f"{shown_path(path)}: not a text, nor a file of arrays whose ending is known")
    return data.decode("utf-8", errors="replace")


def log_of(path: Path, text: str) -> Dump:
    """The matrices of a text, each under the line before it.

    Raises:
        InputError: It has no numbers under a heading, or rows of different lengths alone.
    """
    reading = Reading()
    for line in text.splitlines():
        words = row(line)
        if words is not None:
            reading.rows.append(words)
            continue
        for heading, first in _headings(line):
            reading.begin(heading)
            reading.rows += [first] if first else []
    reading.end()
    if reading.notes and not reading.tensors:
        name = reading.notes[0].partition(":")[0]
        raise InputError(
            f"{shown_path(path)}: {visible(name)}: rows of different lengths: print as many numbers in each row"
        )
    if not reading.tensors:
        raise InputError(
            f"{shown_path(path)}: has no numbers under a heading: print each matrix below a line with its name"
        )
    return Dump(path, with_precision(reading.tensors), tuple(visible(note) for note in reading.notes))


def _headings(line: str) -> Iterator[tuple[str, Row]]:
    """A heading, and the numbers that stand behind it in the same line."""
    text = line.strip()
    for theirs, ours in OTHER_SPELLINGS.items():
        text = text.replace(theirs, ours)
    before, sign, after = text.partition(":") if ":" in text else text.partition("=")
    words = after.translate(SEPARATORS).split()
    if sign and words and all(NUMBER.fullmatch(word) for word in words):
        yield before, words
    else:
        yield text.rstrip(":= "), []
