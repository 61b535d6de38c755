"""The matrix of the current step, with its legend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.text.display import cells, visible
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import Scale, Tile, View

CORNERS = 6
"""Columns of a border that its title cannot have."""


class MatrixPane(Vertical):
    """Heat map above, legend below."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        """Make an empty pane."""
        super().__init__(id=id, classes=classes)
        self._titles: Sequence[str] = ("",)
        self.cells = HeatMap(id="cells")
        self._legend = Legend(id="legend")

    def compose(self) -> ComposeResult:
        """Heat map and legend."""
        yield self.cells
        yield self._legend

    def show_matrix(
        self,
        view: View,
        scale: Scale,
        tile: Tile,
        place: Place,
        *,
        titles: Sequence[str] = ("",),
        note: str = "",
        number_width: int = 0,
    ) -> None:
        """Show a matrix with the cursor at a place, under the first of the titles that there is room for."""
        self._titles = titles
        self._show_title()
        self.cells.show(view, scale, tile, number_width=number_width, cursor=(place.row, place.column))
        masked = not bool(np.isfinite(tile.values).all())
        self._legend.show(None if view.integer else scale, note=note, masked=masked, edited=bool(view.edited))

    def on_resize(self) -> None:
        """Another title may fit."""
        self._show_title()

    def _show_title(self) -> None:
        """The longest title that fits between the corners."""
        shown = [visible(title) for title in self._titles]
        room = self.outer_size.width - CORNERS
        self.border_title = Content(next((title for title in shown if cells(title) <= room), shown[-1]))
