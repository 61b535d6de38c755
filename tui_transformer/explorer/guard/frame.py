"""The frame that the terminal shows: of an update, only the cells that changed are written.

Textual writes every line of a widget that is drawn again, with all colours of every segment. Over a slow line that is
felt. Here an update is compared with what was written before, cell by cell, and what is left is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.color import ColorSystem
from rich.console import Console
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.geometry import Region
from textual.strip import Strip

from tui_transformer.explorer.guard.pen import Change, written
from tui_transformer.explorer.guard.terminal_cells import Cell, Cells

MOVE = 4
"""Bytes that a move to the right takes at least."""


class Frame:
    """The cells that were written to the terminal, line by line."""

    def __init__(self, system: ColorSystem) -> None:
        self._lines: dict[int, list[Cell | None]] = {}
        self._cells = Cells(system)

    def forget(self) -> None:
        """Take nothing for written: the terminal has another size, or somebody else wrote to it."""
        self._lines.clear()

    def changes(self, update: LayoutUpdate | ChopsUpdate) -> Changes:
        """The update as far as it changes anything, which counts as written: it has to be."""
        return Changes(self.write(update))

    def write(self, update: LayoutUpdate | ChopsUpdate) -> str:
        """The sequences that make the terminal show an update, after which it counts as written."""
        changes = list[Change]()
        for y, x, strips in _pieces(update):
            changes += self._changed(y, x, self._cells.of(strips))
        return written(changes, max(map(len, self._lines.values()), default=0))

    def _changed(self, y: int, x: int, cells: list[Cell]) -> list[Change]:
        """Those of the cells from a column on that are not on the terminal, which count as written now."""
        line = self._lines.setdefault(y, [])
        line += [None] * (x + len(cells) - len(line))
        before = line[x : x + len(cells)]
        if before == cells:
            return []
        line[x : x + len(cells)] = cells
        if all(len(text) == 1 for text, _ in cells):
            changed = [at for at, (old, new) in enumerate(zip(before, cells, strict=True)) if old != new]
            return [(y, x + at, cells[at]) for at in _bridged(changed, cells)]
        # terminals disagree on how wide such text is: all of it again, every part at its column
        return [(y, at, cell) for at, cell in enumerate(cells, x) if cell[0]]


def _bridged(changed: list[int], cells: list[Cell]) -> Iterator[int]:
    """The places of cells that changed, and of the few between two that take fewer bytes than a move over them."""
    before = None
    for at in changed:
        if before is not None and 1 < at - before <= MOVE:
            between = cells[before + 1 : at]
            if all(look is cells[at][1] is cells[before][1] and text.isascii() for text, look in between):
                yield from range(before + 1, at)
        yield at
        before = at


class Changes(CompositorUpdate):
    """An update of which only that is written which differs from what is on the terminal.

    Attributes:
        sequences: The sequences to be written; "" where nothing does.
    """

    def __init__(self, sequences: str) -> None:
        self.sequences = sequences

    def render_segments(self, console: Console) -> str:  # noqa: ARG002 - Textual's signature
        """The sequences to be written."""
        return self.sequences


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, Iterable[Strip]]]:
    """Line, first column and strips of everything that an update would write."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            yield y, update.region.x, strips
        return
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < last and end > first:
                yield y, x, (strip.crop(0, min(end, last) - x),)


def strips_of(app: App[Any]) -> list[Strip]:
    """The lines that the screen in front shows."""
    return list(app.screen._compositor.render_strips())


def update_of(strips: Sequence[Strip]) -> LayoutUpdate:
    """An update that shows these lines from the first on."""
    width = max((strip.cell_length for strip in strips), default=0)
    return LayoutUpdate([[strip] for strip in strips], Region(0, 0, width, len(strips)))
