"""The labels along a matrix: one a column where they fit, else a label every so many columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style

from tui_transformer.explorer.widgets.grid import SMALLEST_NUMBER_CELL, Grid
from tui_transformer.explorer.widgets.labels import fit_label, label_width
from tui_transformer.text.display import visible
from tui_transformer.views.view import Axis

_MEASURED = 512
_LONGEST_TICK = 8
LONGEST = 24
"""Columns of the label under the cursor at most."""
_STEPS = (1, 2, 5, 10, 20, 50, 100)


def widest_label(axis: Axis) -> int:
    """The cells of the widest label among the first few hundred and the last."""
    indices = {*range(min(axis.size, _MEASURED)), axis.size - 1} if axis.size else ()
    return max((label_width(axis.label(index)) for index in indices), default=0)


@dataclass(frozen=True)
class Header:
    """The line of column labels, the one under the cursor highlighted."""

    label: Callable[[int], str]
    grid: Grid
    plain: Style
    marked: Style

    def segments(self, columns: range, cursor: int, shown: range) -> list[Segment]:
        """The labels of the columns.

        Args:
            columns: The columns that are at least partly on screen.
            cursor: The column to highlight.
            shown: What is on screen, counted from the left edge of the first column.
        """
        if self.grid.cell_width >= SMALLEST_NUMBER_CELL:
            cells = [self._cell(column, self.marked if column == cursor else self.plain) for column in columns]
            return self._with_whole(cells, columns, cursor, shown) if cursor in columns else cells
        return self._ticks(columns, cursor, shown)

    def _with_whole(self, cells: list[Segment], columns: range, cursor: int, shown: range) -> list[Segment]:
        """The label under the cursor in full, instead of those beside it, where its own column cuts it."""
        cell, text = self.grid.cell_width, visible(self.label(cursor))
        end = min(shown.stop, len(columns) * cell)
        width = min(label_width(text), LONGEST, end - shown.start - 2)
        if label_width(text) < cell or width < cell:
            return cells
        middle = (cursor - columns.start) * cell + cell // 2
        start = max(min(middle - width // 2, end - width - 1), shown.start + 1)
        first, last = (start - 1) // cell, -(-(start + width + 1) // cell)
        over = " " * (start - first * cell) + fit_label(text, width)
        return [*cells[:first], Segment(set_cell_size(over, (last - first) * cell), self.marked), *cells[last:]]

    def _cell(self, column: int, style: Style) -> Segment:
        width = self.grid.cell_width
        return Segment(fit_label(self.label(column), width - 1, "center").rjust(width - 1) + " ", style)

    def _ticks(self, columns: range, cursor: int, shown: range) -> list[Segment]:
        cell, step = self.grid.cell_width, self._step(columns)
        marked = [(cursor, self.marked)] if cursor in columns else []
        ticks = [(column, self.plain) for column in columns if column % step == 0]
        placed: list[tuple[int, str, Style]] = []
        for column, style in [*marked, *ticks]:
            text = self._tick(column)
            start = max(min((column - columns.start) * cell, shown.stop - label_width(text)), 0)
            if start >= shown.start and _is_free(start, label_width(text), placed):
                placed.append((start, text, style))
        return self._joined(sorted(placed, key=lambda piece: piece[0]), len(columns) * cell)

    def _tick(self, column: int) -> str:
        label = self.label(column)
        return fit_label(label, min(label_width(label), _LONGEST_TICK))

    def _step(self, columns: range) -> int:
        longest = max((label_width(self._tick(column)) for column in columns), default=1)
        return next(step for step in _STEPS if step * self.grid.cell_width >= longest + 2 or step == _STEPS[-1])

    def _joined(self, pieces: list[tuple[int, str, Style]], end: int) -> list[Segment]:
        segments, x = [], 0
        for start, text, style in pieces:
            segments += [Segment(" " * (start - x), self.plain), Segment(text, style)]
            x = start + label_width(text)
        return [*segments, Segment(" " * max(end - x, 0), self.plain)]


def _is_free(start: int, width: int, placed: list[tuple[int, str, Style]]) -> bool:
    return all(start + width < other or other + label_width(text) < start for other, text, _ in placed)
