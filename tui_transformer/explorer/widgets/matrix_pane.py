"""The matrix of a step, with its scale in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.strip import Strip

from tui_transformer.explorer.guard.error_boundary import CarefulWidget
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_drawing import EDITED_GLYPH, MASKED_GLYPH
from tui_transformer.explorer.widgets.palette import Palette, Surface, palette
from tui_transformer.text.display import cells, fit_label, visible
from tui_transformer.views.numbers import short_number
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import Scale, Tile, View

CORNERS = 6
"""Columns of a border that its title cannot have."""

_WIDEST_RAMP, _WIDEST_GLYPHS = 24, 40
_NARROWEST_RAMP = 5
_GAP = "   "
BLANK = "blank"
"""Sign for a glyph of nothing but spaces."""


class MatrixPane(Vertical):
    """Heat map above, legend below."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
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

    def show_missing(self, title: str) -> None:
        """Show the frame of a matrix that is still to come."""
        self._titles = (title,)
        self._show_title()
        self.cells.clear()
        self._legend.show(None)

    def on_resize(self) -> None:
        """Another title may fit."""
        self._show_title()

    def _show_title(self) -> None:
        shown = [visible(title) for title in self._titles]
        room = self.outer_size.width - CORNERS
        self.border_title = Content(next((title for title in shown if cells(title) <= room), shown[-1]))


class Legend(CarefulWidget):
    """The low value, the ramp, the high value, what a masked cell looks like, and a note."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"legend--text"}

    DEFAULT_CSS = """
    Legend {
        height: 1;
        background: $background;
        color: $foreground;
        & > .legend--text { color: $foreground 65%; }
    }
    """

    _scale: Scale | None = None
    _remarks: tuple[str, ...] = ()

    def show(self, scale: Scale | None, *, note: str = "", masked: bool = False, edited: bool = False) -> None:
        """Show a scale.

        Args:
            scale: The range that the colours stand for; None for an empty line.
            note: What else there is to say about the values.
            masked: Whether there are masked cells to explain.
            edited: Whether there are cells that were set.
        """
        signs = (f"{MASKED_GLYPH} masked" * masked, f"{EDITED_GLYPH} edited" * edited, note)
        self._scale, self._remarks = scale, tuple(filter(None, signs))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        strip = Strip(self._segments(self._scale)) if self._scale and y == 0 else Strip([])
        return strip.adjust_cell_length(self.size.width, self.rich_style)

    def _segments(self, scale: Scale) -> list[Segment]:
        text = self.get_component_rich_style("legend--text")
        low, high = f"{short_number(scale.low)} ", f" {short_number(scale.high)}"
        room = self.size.width - len(low) - len(high)
        ramp = self._ramp(scale, room) if room >= _NARROWEST_RAMP else [Segment("to", text)]
        segments = [Segment(low, text), *ramp, Segment(high, text)]
        for remark in self._remarks:
            room = self.size.width - Segment.get_line_length(segments) - len(_GAP)
            if room >= min(cells(remark), _NARROWEST_RAMP):
                segments.append(Segment(_GAP + fit_label(remark, min(cells(remark), room)), text))
        return segments

    def _ramp(self, scale: Scale, room: int) -> list[Segment]:
        """One column a colour, where a signed scale says where 0 is; glyphs where there is no colour."""
        colors = palette(scale.kind, Surface.of(self.app), self.rich_style)
        if not colors.has_color:
            return _glyph_ramp(colors, min(room, _WIDEST_GLYPHS), self.rich_style)
        width = min(room, _WIDEST_RAMP)
        width -= (width + 1) % 2
        at = np.rint(np.linspace(0, len(colors.styles) - 1, width)).astype(int)
        segments = [Segment(" ", colors.styles[level]) for level in at.tolist()]
        if scale.kind == "diverging":
            segments[width // 2] = Segment("0", colors.styles[at[width // 2]])
        return segments


def _glyph_ramp(colors: Palette, width: int, style: Style) -> list[Segment]:
    """The glyphs of the levels as in the cells, apart from each other, a blank one as a word; as many as fit."""
    for count in range(len(colors.glyphs), 1, -1):
        at = np.rint(np.linspace(0, len(colors.glyphs) - 1, count)).astype(int)
        text = " ".join(colors.glyphs[level] if colors.glyphs[level].strip() else BLANK for level in at.tolist())
        if len(text) <= width or count == 2:
            return [Segment(text[:width], style)]
    return []
