"""How the embedding of a new model begins: by chance, with zeros, or with word vectors from elsewhere."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.weights import Reader
from tui_transformer.errors import UsageError
from tui_transformer.model.word_vectors import WordVectors

TABLE = "embedding.tokens.weight"
"""The end of the names of tables of words."""


def _zeros(random: np.random.Generator, shape: Shape) -> Host:
    """Every word begins the same: only positions tell words apart until the table is trained."""
    del random
    return np.zeros(shape, np.float32)


def _uniform(random: np.random.Generator, shape: Shape) -> Host:
    """Between ±√(2 ÷ d): rows have a mean square length of 2 ÷ 3, however wide the model is."""
    bound = math.sqrt(2.0 / shape[-1])
    return random.uniform(-bound, bound, shape).astype(np.float32)


STARTS: Mapping[str, Callable[[np.random.Generator, Shape], Host]] = {"zeros": _zeros, "uniform": _uniform}
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
