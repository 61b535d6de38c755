"""All heads of a step side by side, small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import BindingType
from textual.geometry import Offset, Region, Size
from textual.strip import Strip

from tui_transformer.explorer.widgets.character_graphics import FEW, Picture, small_picture
from tui_transformer.explorer.widgets.cursor import ACROSS, CHOOSE, ROW_ENDS, CursorWidget
from tui_transformer.explorer.widgets.grid import Cell
from tui_transformer.explorer.widgets.palette import Surface
from tui_transformer.text.display import fit_label
from tui_transformer.views.step_view import pooled
from tui_transformer.views.view import Scale, Values

_SMALLEST_SLOT, _NARROWEST = 4, 4
_GAP, _SMALL_GAP = 2, 1
_MARK = "▸"


class HeadThumbnails(CursorWidget, can_focus=True):
    """Small heat maps of the heads with their numbers; two rows of a matrix share a line."""

    BINDINGS: ClassVar[list[BindingType]] = [*ACROSS, *ROW_ENDS, *CHOOSE]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"thumbnails--number", "thumbnails--selected"}

    DEFAULT_CSS = """
    HeadThumbnails {
        height: auto;
        background: $background;
        color: $foreground;
        & > .thumbnails--number { color: $foreground 65%; }
        & > .thumbnails--selected { color: $accent; text-style: bold; }
    }
    """

    tiles: Sequence[Values] = ()
    """The matrix of each head, as it is drawn."""

    scale = Scale("sequential", 0.0, 1.0)
    _of = _left = 0
    _shape = (0, 0)

    class Moved(CursorWidget.Moved):
        """The user went to a head; `index` is its number."""

    class Chosen(CursorWidget.Chosen):
        """The user chose the head that is selected."""

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._pictures: dict[int, Picture] = {}

    def show(
        self,
        tiles: Sequence[Values],
        selected: int,
        scale: Scale,
        of: int = 0,
        shape: tuple[int, int] = (0, 0),
    ) -> None:
        """Show heads.

        Args:
            tiles: The matrix of each head, already reduced to about as many rows and columns as there is room for.
            selected: The head that is shown large.
            scale: The range that the colours stand for.
            of: How many heads there are, where not all are given.
            shape: Rows × columns of what a tile was made from.
        """
        self.tiles, self.scale, self._of, self._shape = tiles, scale, max(of, len(tiles)), shape
        self.at = 0, selected
        self._redraw()
        self.refresh(layout=self.styles.height is not None and self.styles.height.is_auto)

    @property
    def extent(self) -> Cell:
        """One row of heads."""
        return 1, len(self.tiles)

    def cell_at(self, place: Offset) -> Cell | None:
        """The head that is drawn at a place."""
        head = self._left + place.x // self._slot
        return (0, head) if head < len(self.tiles) else None

    @property
    def marked(self) -> Region | None:
        """The selected head."""
        return Region((self.at[1] - self._left) * self._slot, 0, self._slot, 1) if self.tiles else None

    def follow(self, before: Cell) -> None:  # noqa: ARG002 - any head may come on screen
        """Show the marked head, and as many as fit beside it."""
        self._scroll_to_selected()
        self.refresh()

    def on_resize(self) -> None:
        """Show as many heads as fit, the selected one among them."""
        self._left = 0
        self._redraw()

    def restyled(self) -> None:
        """Follow a change of theme."""
        self._redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """One line of numbers, and a line for two rows of the tallest matrix."""
        return 1 + max(((len(tile) + 1) // 2 for tile in self.tiles), default=0)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the heads."""
        shown = range(self._left, min(self._left + self._fitting, len(self.tiles)))
        parts = [self._number(index) if y == 0 else self._line(index, y - 1) for index in shown]
        segments = [segment for part in parts for segment in part]
        return Strip(segments).adjust_cell_length(self.size.width, self.ink())

    @property
    def _slot(self) -> int:
        if not self.tiles:
            return _SMALLEST_SLOT
        widest: int = max(tile.shape[1] for tile in self.tiles)
        return max(min(widest + _GAP, self.size.width // len(self.tiles)), min(_NARROWEST, widest) + _SMALL_GAP)

    @property
    def _columns(self) -> int:
        """Columns of a picture at most: as many as it takes for all heads to be shown, but not too few."""
        return self._slot - (_GAP if self._slot > _NARROWEST + _GAP else _SMALL_GAP)

    @property
    def _fitting(self) -> int:
        return max((self.size.width + _GAP) // self._slot, 1)

    def _note(self) -> str:
        """Which heads are shown where that is not all, and what a cell of a picture stands for."""
        shown = range(self._left, min(self._left + self._fitting, len(self.tiles)))
        parts = [f"{shown.start}–{shown.stop - 1} of {self._of} heads"] if len(shown) < self._of and shown else []
        if self.tiles and all(self._shape):
            tall = -(-self._shape[0] // max(len(self.tiles[0]), 1))
            wide = -(-self._shape[1] // max(min(self._columns, self.tiles[0].shape[1]), 1))
            parts += [f"a cell is the largest of up to {tall} × {wide}"] * (tall * wide > 1)
        return " · ".join(parts)

    def _scroll_to_selected(self) -> None:
        last_left = max(len(self.tiles) - self._fitting, 0)
        lowest = self.at[1] - self._fitting + 1
        self._left = max(min(max(self._left, lowest), self.at[1], last_left), 0)
        if self.border_subtitle != (note := self._note()):
            self.border_subtitle = note

    def _redraw(self) -> None:
        self._pictures.clear()
        self._scroll_to_selected()
        self.refresh()

    def _number(self, index: int) -> list[Segment]:
        is_selected = index == self.at[1]
        style = self.ink(f"thumbnails--{'selected' if is_selected else 'number'}")
        mark = _MARK if is_selected else " "
        return [Segment(fit_label(f"{mark}{index}", self._slot), style)]

    def _line(self, index: int, y: int) -> list[Segment]:
        if index not in self._pictures:
            tile = pooled(self.tiles[index], self._columns, axis=1)
            self._pictures[index] = small_picture(tile, self.scale, Surface.of(self.app), self.ink(), FEW)
        drawn = self._pictures[index]
        cells = drawn[y] if y < len(drawn) else []
        return [*cells, Segment(" " * (self._slot - len(cells)), self.ink())]
