"""Sheets of the lens screen: a table of words whose cells come piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tui_transformer.explorer.shell.worker import Task
from tui_transformer.views.view import Scale

TOP = 5
"""Words of each cell that are kept."""

Words = tuple[tuple[int, float], ...]
"""Token IDs with their numbers, the highest first."""


class Sheet(Protocol):
    """Rows of a model × tokens of a sentence; a cell has the words that are spelled there."""

    @property
    def rows(self) -> Sequence[str]:
        """The label of every row."""

    @property
    def row(self) -> int:
        """The row to begin with."""

    @property
    def words(self) -> dict[tuple[int, int], Words]:
        """Known cells, by row and token."""

    @property
    def scale(self) -> Scale:
        """The range of the numbers so far."""

    @property
    def heading(self) -> str:
        """How the words are read."""

    @property
    def legend(self) -> str:
        """Meaning of the numbers."""

    def number(self, value: float) -> str:
        """A number as it is written."""

    def missing(self, rows: range, columns: range) -> Any:
        """The next piece of cells that is not known; None where all are."""

    def cost(self, piece: Any) -> int:
        """Floating-point operations of a piece."""

    def spell(self, piece: Any, task: Task) -> dict[tuple[int, int], Words]:
        """The cells of a piece."""

    def about(self, row: int) -> tuple[str, str]:
        """A row in words, and what else is to be said of it."""

    def place(self, row: int) -> tuple[str, int]:
        """The step that a row is read from, and the head."""
