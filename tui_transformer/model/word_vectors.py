"""How the embedding of a new model begins: by chance, with zeros, or with the word vectors of other programs.

A line of GloVe is a word and its numbers (Pennington et al. 2014). word2vec begins with a line of two numbers, how many
words and how wide; then lines as GloVe's, or each word, a space, and its numbers as float32 (Mikolov et al. 2013).
Only the rows of the words that are wanted are kept, whatever the size of the file.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.parts import check_memory
from tui_transformer.engine.weights import Reader
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import check_regular
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import Vocabulary

LONGEST_LINE = 1 << 20
MOST_COLUMNS = 1 << 16
CHUNK = 1 << 20
NAMED = 8
"""Missing words that are named."""

_HEADER = re.compile(rb"(\d{1,9}) (\d{1,5})\s*\n")
Row = tuple[str, Host]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors for the words of a vocabulary.

    Attributes:
        rows: Words × columns, 0 where there is none.
        there: For every word, whether the file has it.
    """

    path: Path
    rows: Host
    there: Host

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return int(self.rows.shape[1])

    def said(self, vocabulary: Vocabulary) -> str:
        """One line: how many words have a vector, and which have none."""
        missing = [vocabulary.word(int(token)) for token in np.flatnonzero(~self.there)]
        named = ", ".join(visible(word) for word in missing[:NAMED]) + ", …" * (len(missing) > NAMED)
        known = f"{self.there.sum():,} of {len(self.there):,} words"
        none = f"; none for {named}" if missing else ""
        return f"{self.path.name}: vectors of {self.width} numbers for {known}{none}"


def read_vectors(path: Path, vocabulary: Vocabulary) -> WordVectors:
    """The vectors of the words of a vocabulary; one as it is written comes before one in another case.

    Raises:
        InputError: The file cannot be read, is none of the three kinds, or has none of the words.
    """
    check_regular(path)
    with path.open("rb") as file:
        width, rows = _rows(path, file)
        if not 1 <= width <= MOST_COLUMNS:
            raise InputError(f"{path}: no word vectors: its first line has {width} numbers, of 1 to {MOST_COLUMNS:,}")
        check_memory(vocabulary.size * width * 4, f"{path.name}: vectors need", "use a smaller vocabulary")
        vectors, exact = np.zeros((vocabulary.size, width), np.float32), np.zeros(vocabulary.size, np.bool_)
        there, ids = exact.copy(), vocabulary.ids
        for word, values in rows:
            own = ids.get(word)
            token = ids.get(vocabulary.rule.form(word)) if own is None else own
            if token is None or exact[token] or (own is None and there[token]):
                continue
            if not np.isfinite(values).all():
                raise InputError(f"{path}: the vector of {visible(word[:40])!r} is not finite: copy the file again")
            vectors[token], there[token], exact[token] = values, True, own is not None
    if not there.any():
        raise InputError(f"{path}: none of the words of {vocabulary.name} is in it: name another file, or vocabulary")
    return WordVectors(path, vectors, there)


def _rows(path: Path, file: BinaryIO) -> tuple[int, Iterator[Row]]:
    """How wide vectors are, and all of them in order."""
    start = file.read(LONGEST_LINE)
    header = _HEADER.match(start)
    if header is None:
        line = start.split(b"\n", 1)[0]
        if len(line) >= LONGEST_LINE or b"\0" in line:
            raise InputError(f"{path}: no word vectors: a line is a word and its numbers")
        width = len(line.split()) - 1
        file.seek(0)
        return width, _of_text(path, file, width)
    count, width = int(header[1]), int(header[2])
    file.seek(header.end())
    if _is_text(start[header.end() :], width):
        return width, _of_text(path, file, width, 2)
    return width, _of_binary(path, file, count, width)


def _is_text(start: bytes, width: int) -> bool:
    """Whether a line of a word and so many numbers follows."""
    pieces = start.split(b"\n", 1)[0].rstrip().rsplit(b" ", width)
    try:
        return len(pieces) == width + 1 and all(float(piece) == float(piece) for piece in pieces[1:])
    except ValueError:
        return False


def _of_text(path: Path, file: BinaryIO, width: int, first: int = 1) -> Iterator[Row]:
    """A word and its numbers a line; a word may have spaces in it."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), first):
        pieces = line.rstrip().rsplit(b" ", width)
        if not line.strip():
            continue
        if len(pieces) != width + 1:
            raise InputError(f"{path}: line {number} has not a word and {width} numbers: copy the file again")
        try:
            values = np.array(pieces[1:], dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{path}: line {number} has a value that is no number: copy the file again") from error
        yield pieces[0].decode("utf-8", "replace"), values


def _of_binary(path: Path, file: BinaryIO, count: int, width: int) -> Iterator[Row]:
    """A word, a space and its numbers as little-endian float32; some writers put a line break behind them."""
    size, buffer, at = 4 * width, b"", 0
    for number in range(count):
        while (end := buffer.find(b" ", at)) < 0 or end + 1 + size > len(buffer):
            more = file.read(CHUNK)
            buffer, at = buffer[at:] + more, 0
            if not more or (len(buffer) > LONGEST_LINE + size + CHUNK and buffer.find(b" ") < 0):
                raise InputError(f"{path}: ends after {number:,} of {count:,} vectors: copy the file again")
        word, values = buffer[at:end], np.frombuffer(buffer, "<f4", width, end + 1)
        at = end + 1 + size
        yield word.strip(b"\n").decode("utf-8", "replace"), values


TABLE = "embedding.tokens.weight"
"""The end of the names of tables of words."""


def _uniform(random: np.random.Generator, shape: Shape) -> Host:
    """Between ±√(2 ÷ d): rows have a mean square length of 2 ÷ 3, however wide the model is."""
    bound = math.sqrt(2.0 / shape[-1])
    return random.uniform(-bound, bound, shape).astype(np.float32)


STARTS: Mapping[str, Callable[[np.random.Generator, Shape], Host]] = {
    "zeros": lambda _, shape: np.zeros(shape, np.float32),
    "uniform": _uniform,
}
NORMAL = "normal"
"""As all other weights."""

STARTS_SAID = (
    "Word vectors at first: normal as all weights; uniform in ±√(2 ÷ d), as long in every width; zeros: only positions "
    "tell words apart."
)
"""The choice and its reasons, for a form."""


@dataclass(frozen=True, eq=False)
class NewEmbedding:
    """How the table of words begins.

    Attributes:
        start: "normal", "uniform" or "zeros".
        vectors: Rows from a file, for the words that it has.

    Raises:
        UsageError: There is no such start.
    """

    start: str = NORMAL
    vectors: WordVectors | None = None

    def __post_init__(self) -> None:
        if self.start not in (NORMAL, *STARTS):
            raise UsageError(f"embedding {self.start[:40]!r} is not known: use {', '.join((NORMAL, *STARTS))}")

    def over(self, others: Reader, seed: int) -> Reader:
        """All weights as others make them, but for tables of words."""

        def read(name: str, shape: Shape) -> Host:
            if not name.endswith(TABLE):
                return others(name, shape)
            if self.start == NORMAL:
                table = others(name, shape)
            else:
                table = STARTS[self.start](np.random.default_rng([seed, zlib.crc32(name.encode())]), shape)
            if self.vectors is None:
                return table
            return np.where(self.vectors.there[:, None], self.vectors.rows, table)

        return read
